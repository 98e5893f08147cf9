package jobs

import (
	"fmt"
	"slices"
	"time"

	"pawl/jobs/schedule"
)

// inTrouble reports whether somebody should look at the job.
func (s JobSummary) inTrouble() bool {
	return slices.Contains([]string{"dead", "overdue", "missed", "late"}, s.Health)
}

// judge is the job's health in a word and why. The worst comes first, of it the newest; what is older than the last periods
// that are shown counts only while it stops others.
func (j *jobRow) judge(all, last []marked) (health, why string) {
	if j.RetiredAt != nil {
		return "retired", "Retired " + j.clock(*j.RetiredAt)
	}
	stops := func(m marked) bool { return m.Waits == "decision" || m.Waits == "pause" }
	recent := func(m marked) bool {
		return slices.ContainsFunc(last, func(l marked) bool { return l.Key == m.Key && l.Revision == m.Revision })
	}
	for _, c := range []struct {
		health string
		is     func(marked) bool
		say    func(marked) string
	}{
		{"dead", func(m marked) bool { return m.State == "dead" && (recent(m) || stops(m)) }, j.sayDead},
		{"overdue", func(m marked) bool { return m.overdue(j.Now) }, func(m marked) string {
			return fmt.Sprintf("Overdue: %s was due by %s", j.name(m), j.clock(*m.DueAt))
		}},
		{"missed", func(m marked) bool { return m.State == "missed" && recent(m) }, j.sayMissed},
		{"late", func(m marked) bool { return m.late(j.Now) }, func(m marked) string {
			return fmt.Sprintf("Late: %s should have started by %s", j.name(m), j.clock(*m.LateAt)) + j.sayWait(m, "; ")
		}},
	} {
		for _, m := range slices.Backward(all) {
			if c.is(m) {
				return c.health, c.say(m)
			}
		}
	}
	if j.PausedAt != nil {
		return "paused", j.sayPaused()
	}
	return j.judgeWell(all, last)
}

// judgeWell says what a job without trouble does.
func (j *jobRow) judgeWell(all, last []marked) (health, why string) {
	for _, m := range all {
		if m.State == stateRunning {
			text := "Running " + j.name(m)
			if m.Attempts > 1 {
				text += fmt.Sprintf(", attempt %d", m.Attempts)
			}
			return "running", text
		}
	}
	for _, m := range all {
		if m.State == stateOpen {
			return "waiting", "Waiting: " + j.name(m) + j.sayWait(m, " ")
		}
	}
	switch {
	case j.planErr != nil:
		return "ok", "Its stored definition can't be read by this version"
	case len(last) == 0:
		return "ok", "Nothing has been owed yet"
	}
	m := last[len(last)-1]
	return "ok", fmt.Sprintf("Last: %s, %s", j.name(m), m.State)
}

func (j *jobRow) sayDead(m marked) string {
	runs := "1 run"
	if m.Attempts != 1 {
		runs = fmt.Sprintf("%d runs", m.Attempts)
	}
	text := fmt.Sprintf("Dead: %s after %s", j.name(m), runs)
	switch m.Reason {
	case "":
	case stateTimedOut:
		text += ", the last timed out"
	case stateLost:
		text += ", the last lost its lease"
	case "uncertain":
		text += ", nobody knows how the last ended"
	default:
		text += ", the last " + m.Reason
	}
	switch m.Waits {
	case "decision":
		text += "; the next wait for a decision"
	case "pause":
		text += "; the job is paused"
	}
	return text
}

func (j *jobRow) sayMissed(m marked) string {
	text := "Missed " + j.name(m)
	if m.Ticks > 1 {
		text += fmt.Sprintf(" and %d more", m.Ticks-1)
	}
	switch {
	case m.Reason == schedule.ReasonCatchUp && j.plan.CatchUp == schedule.CatchUpNone:
		return text + ", catch-up is off"
	case m.Reason == schedule.ReasonCatchUp:
		return text + ", only the latest is caught up with"
	case m.Reason == schedule.ReasonWindow:
		return text + ", it was older than the catch-up window"
	case m.Reason == schedule.ReasonTooLate:
		return text + ", it could not start in time"
	}
	return text
}

func (j *jobRow) sayPaused() string {
	text := "Paused"
	if j.PausedBy != "" {
		text += " by " + j.PausedBy
	}
	if j.PausedUntil != nil {
		text += " until " + j.clock(*j.PausedUntil)
	}
	if j.PauseNote != "" {
		text += ": " + j.PauseNote
	}
	return text
}

// sayWait is what an open period waits for, after sep; "" for its turn.
func (j *jobRow) sayWait(m marked, sep string) string {
	switch {
	case m.Waits == "paused":
		return sep + "waits for the pause to end"
	case m.Waits == "dead":
		return sep + "waits for a decision on a dead period before it"
	case m.Waits == "needs" && len(j.plan.Needs) == 1:
		return sep + "waits for " + j.plan.Needs[0]
	case m.Waits != "":
		return sep + "waits for the jobs that it needs"
	case m.NotBefore != nil && m.NotBefore.After(j.Now) && m.Attempts > 0:
		return sep + "is retried at " + j.clock(*m.NotBefore)
	case m.NotBefore != nil && m.NotBefore.After(j.Now):
		return sep + "starts at " + j.clock(*m.NotBefore)
	}
	return ""
}

// name is a period as people say it: short ones by the clock of their zone.
func (j *jobRow) name(m marked) string {
	if j.planErr != nil || !j.schedule.Kind().Short() || j.schedule.Manual() {
		return m.Key
	}
	return j.clock(m.ScheduledAt)
}

// clock is a moment on the clock of the schedule's zone, which it names, with its date unless that is today's.
func (j *jobRow) clock(at time.Time) string {
	zone := j.schedule.Zone()
	at, now := at.In(zone), j.Now.In(zone)
	layout := "2006-01-02 15:04"
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		layout = "15:04"
	}
	if at.Second() != 0 {
		layout += ":05"
	}
	return at.Format(layout + " MST")
}
