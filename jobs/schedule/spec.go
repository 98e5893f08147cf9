package schedule

import (
	"fmt"
	"time"
)

// Kind says what one period of a schedule is.
type Kind string

// The kinds of period. Days, weeks and months are those of the schedule's zone.
const (
	Day     Kind = "day"   // a local date
	Hour    Kind = "hour"  // a local hour, told apart by its offset from UTC
	Week    Kind = "week"  // an ISO week, Monday to Sunday
	Month   Kind = "month" // a calendar month
	PerTick Kind = "tick"  // each tick is a period of its own
)

// Short reports whether periods of the kind are shorter than a day: hour and tick.
// Their missed ticks are folded into stretches and caught up with the latest only.
func (k Kind) Short() bool { return k == Hour || k == PerTick }

// Spec is what a job declares. The zero value of every field but Expr is its default.
type Spec struct {
	// Expr is five cron fields (six with Seconds), "@hourly" to "@yearly",
	// "@every D", "@at 2026-09-16T02:15" (local time) or "@manual".
	Expr string
	// Zone is an IANA name; "" is UTC. The host's zone is never used.
	Zone string
	// Period is the kind of period that a tick owes; "" infers it from Expr.
	Period Kind
	// Offset shifts the owed period: with -1 the run on the 10th settles the 9th.
	// It ranges from -366 to 366 periods.
	Offset int
	// Seconds says that Expr has six fields, of which the first is seconds.
	Seconds bool
	// DayMatch is needed when day-of-month and day-of-week are both set: "or", "and".
	DayMatch string
	// Gap says what a fixed hour does on the day that its wall time is missing:
	// "after" ("" too) runs at the first instant after the gap, "skip" does not run.
	Gap string
	// Overlap says in which pass a fixed hour runs when its wall time is repeated:
	// "first" ("" too), "second" or "both".
	Overlap string
	// EveryOffset moves the ticks of "@every D" away from the Unix epoch: whole
	// seconds, at least 0 and less than D.
	EveryOffset time.Duration
	// Jitter spreads the starts: each period's begins up to that much after its tick,
	// see [Schedule.JitterOf]. 0 is none. Ticks and periods stay what they are.
	Jitter time.Duration
}

// FieldError says which field of a job is wrong, with which value, and how to fix it.
type FieldError struct {
	Field   string // as in the job file: "schedule", "timezone", "period", "dst.gap"
	Value   string // as written
	Problem string // what is wrong with it, following the value in a sentence
	Fix     string // what to write instead, an imperative without a full stop
}

// Error returns one sentence: field, value, problem and fix.
func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: %q %s; %s", e.Field, e.Value, e.Problem, e.Fix)
}
