package schedule

import (
	"errors"
	"fmt"
)

// What a [*FieldError] may be about, for who tells it in sentences of its own: the error matches one of these, or holds a
// [*TicksError], besides.
var (
	ErrNever    = errors.New("never matches any date")
	ErrDays     = errors.New("sets day-of-month and day-of-week, which cron would OR")
	ErrZoneName = errors.New("is not an IANA zone")
)

// TicksError says that a period gets more than one tick: only the first could be owed.
type TicksError struct {
	Expr  string // the schedule, as written
	Ticks int64  // 2 or more
	Where string // when: "a day", "in 2026-10-25, when the clocks change,"
}

// Error follows the period's kind in a sentence.
func (e *TicksError) Error() string {
	return fmt.Sprintf("gets %d ticks %s from %q, of which %d would be refused", e.Ticks, e.Where, e.Expr, e.Ticks-1)
}

// factError is a FieldError whose problem is a fact.
type factError struct {
	*FieldError

	fact error
}

// Unwrap returns both.
func (e factError) Unwrap() []error { return []error{e.FieldError, e.fact} }

func about(fact error, field, value, fix string) error {
	return factError{&FieldError{field, value, fact.Error(), fix}, fact}
}
