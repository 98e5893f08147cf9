package jobs

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrUnknownJob is returned for a job that has no stored schedule.
	ErrUnknownJob = errors.New("jobs: unknown job")
	// ErrComplete is returned when a period that is complete would have to run again.
	ErrComplete = errors.New("jobs: period is complete")
	// ErrRunning is returned when a period is asked for that runs at this moment.
	ErrRunning = errors.New("jobs: period is running")
	// ErrTimeout is the cause of a context that ended because the run took longer than its timeout.
	ErrTimeout = errors.New("jobs: run took longer than its timeout")
	// ErrDrained is the cause of a context that ended because the process shuts down. The run costs no attempt.
	ErrDrained = errors.New("jobs: process is shutting down")
	// ErrEnded is returned by methods of a [Run] that has ended.
	ErrEnded = errors.New("jobs: run has ended")
	// ErrNotCommitted is returned when the reply to COMMIT was lost and the database says that it was rolled back.
	ErrNotCommitted = errors.New("jobs: not committed")
	// ErrNotReady is what every [*NotReadyError] is.
	ErrNotReady = errors.New("jobs: not ready")
)

// NotReadyError says why a runner takes no work.
type NotReadyError struct {
	Reason string // one sentence
}

// Error implements error.
func (e *NotReadyError) Error() string { return "jobs: not ready: " + e.Reason }

// Is makes the error an [ErrNotReady].
func (e *NotReadyError) Is(target error) bool { return target == ErrNotReady }

// ConfigError names the field of a [Job] or [Config] that can't be used, its value and the fix.
type ConfigError struct {
	Job   string // empty for a field of Config
	Field string
	Value any
	Fix   string
}

// Error implements error.
func (e *ConfigError) Error() string {
	value := fmt.Sprintf("%v", e.Value)
	switch v := e.Value.(type) {
	case string:
		value = fmt.Sprintf("%q", v)
	case nil:
		value = "is missing"
	}
	if e.Job == "" {
		return fmt.Sprintf("jobs: %s %s: %s", e.Field, value, e.Fix)
	}
	return fmt.Sprintf("jobs: job %q: %s %s: %s", e.Job, e.Field, value, e.Fix)
}

// StuckError says that a function didn't return after its context had ended.
type StuckError struct {
	Job, Period string
	Cause       error         // why the context had ended
	After       time.Duration // how long ago
}

// Error implements error.
func (e *StuckError) Error() string {
	return fmt.Sprintf("jobs: %s %s: function ignores its context, which ended %s ago: %v", e.Job, e.Period,
		e.After.Round(time.Millisecond), e.Cause)
}

// Unwrap returns the cause.
func (e *StuckError) Unwrap() error { return e.Cause }

// PanicError is a panic of a job's function.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }
