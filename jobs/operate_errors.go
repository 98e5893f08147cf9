package jobs

import (
	"fmt"

	"github.com/google/uuid"
)

// PeriodStateError says that a period can't be acted on in its state, and what to do instead. It is an [ErrPeriodState],
// and also an [ErrComplete], [ErrRunning] or [ErrOwed] where it is in such a state.
type PeriodStateError struct {
	Act      string // trigger, retry, rerun, cancel
	Job, Key string
	Revision int
	State    string    // open, running, complete, dead, missed, skipped, held, cancelled
	Run      uuid.UUID // that has the period, or had it last; zero: there was none
	Token    int64     // of that run; 0: there was none
	Fix      string    // what to do, with the command
}

// Error implements error.
func (e *PeriodStateError) Error() string {
	state := e.State
	switch state {
	case stateOpen:
		state = "owed already"
	case stateRunning:
		state = fmt.Sprintf("running, under token %d", e.Token)
	}
	return fmt.Sprintf("jobs: %s %s is %s: %s", e.Job, e.Key, state, e.Fix)
}

// Is makes the error an [ErrPeriodState], and that of the state it names.
func (e *PeriodStateError) Is(target error) bool {
	switch target {
	case ErrPeriodState:
		return true
	case ErrComplete:
		return e.State == stateComplete
	case ErrRunning:
		return e.State == stateRunning
	case ErrOwed:
		return e.State == stateOpen
	}
	return false
}

// refuse is the error of an act that isn't possible in the period's state.
func (x latest) refuse(act, job string) *PeriodStateError {
	e := &PeriodStateError{Act: act, Job: job, Key: x.key, Revision: x.revision, State: x.state, Run: x.run, Token: x.token}
	with := func(command, more string) string { return "pawl " + command + " " + job + " " + x.key + more }
	switch {
	case act == actCancel:
		e.Fix = "it has ended; there is nothing to cancel"
		return e
	case x.state == stateOpen || x.state == stateRunning:
		e.Fix = "follow it with: " + with("why", "")
	case x.state == stateComplete:
		e.Fix = "it doesn't run again by itself; if it has to: " + with("job rerun", " --reason TEXT")
	case x.state == stateDead:
		e.Fix = "to owe it again: " + with("job retry", "")
	case x.state == stateHeld:
		e.Fix = "its job was paused when it was due; to owe it: pawl backfill " + job + " --from " + x.key + " --to " + x.key
	default:
		e.Fix = "to owe it: pawl backfill " + job + " --from " + x.key + " --to " + x.key
	}
	switch act {
	case actRerun:
		e.Fix = "only what is complete is rerun; " + e.Fix
	case actRetry:
		if x.state != stateOpen && x.state != stateRunning {
			e.Fix = "only what is dead is retried; " + e.Fix
		}
	}
	return e
}

// The acts, as the audit calls them.
const (
	actTrigger = "trigger"
	actRetry   = "retry"
	actRerun   = "rerun"
	actCancel  = "cancel"
)
