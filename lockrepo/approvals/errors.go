package approvals

import (
	"errors"
	"fmt"
	"time"

	"pawl/lockrepo"
)

var (
	// ErrSamePerson says that who has asked for it would approve it, and single
	// operator isn't set.
	ErrSamePerson = errors.New("approvals: who asks can't approve: a second person has to")
	// ErrNotApprover says that the person may not approve: it has no such right,
	// or its key is revoked, expired, or not for that lock.
	ErrNotApprover = errors.New("approvals: this person may not approve")
	// ErrNotOperator says that the key may not ask: it isn't an operator's, or it
	// is revoked, expired, or not for that lock.
	ErrNotOperator = errors.New("approvals: this key may not ask for that")
	// ErrExpired says that nobody decided in time: ask again.
	ErrExpired = errors.New("approvals: request has expired")
	// ErrDecided matches every [*DecidedError].
	ErrDecided = errors.New("approvals: request is decided already")
	// ErrNotFound says that there is no request of that id.
	ErrNotFound = errors.New("approvals: no such request")
)

// DecidedError says who has decided a request before.
type DecidedError struct {
	ID    int64
	State string    // approved or declined
	By    string    // the person's name
	At    time.Time // by the database's clock
}

// Error names the request, what was decided, by whom and when.
func (e *DecidedError) Error() string {
	return fmt.Sprintf("approvals: request %d was %s by %q at %s", e.ID, e.State, e.By, e.At.UTC().Format(time.RFC3339))
}

// Is reports whether target is [ErrDecided].
func (e *DecidedError) Is(target error) bool { return target == ErrDecided }

// inputError is a sentence about what the caller gave.
type inputError struct{ sentence string }

func (e inputError) Error() string { return e.sentence }

// Is reports whether target is [lockrepo.ErrInput].
func (e inputError) Is(target error) bool { return target == lockrepo.ErrInput }

func badInput(format string, args ...any) error { return inputError{fmt.Sprintf(format, args...)} }
