package lockclient

import (
	"errors"
	"fmt"
	"time"

	"pawl/fence"
)

var (
	// ErrHeld matches every [*HeldError].
	ErrHeld = errors.New("lockclient: lock is held")
	// ErrNotHeld says that the lease has ended. It is [fence.ErrNotHeld] and
	// matches every [*LostError].
	ErrNotHeld = fence.ErrNotHeld
	// ErrExpired is the cause of a loss by time.
	ErrExpired = errors.New("lockclient: lease expired")
	// ErrTakenOver is the cause of a loss to a successor.
	ErrTakenOver = errors.New("lockclient: lock taken over")
	// ErrForced is the cause of a loss to an operator's forced release.
	ErrForced = errors.New("lockclient: lease released by force")
	// ErrSuspect says that the clocks disagree: start nothing that can't be
	// fenced until a renewal has been answered.
	ErrSuspect = errors.New("lockclient: clocks disagree, lease not yet confirmed")
	// ErrGraceOver is the cause with which Hold revokes a lease whose function
	// goes on after its context has ended.
	ErrGraceOver = errors.New("lockclient: function still running after the grace period")
	// ErrUnanswered says that the server gave no answer, or none that decides
	// anything, in the time that there was. What was asked may have been done.
	ErrUnanswered = errors.New("lockclient: no answer from the server")
)

// HeldError says that somebody else holds a lock. The server doesn't say who.
type HeldError struct {
	Lock       string
	ExpiresAt  time.Time     // by the database's clock; zero if it isn't known
	RetryAfter time.Duration // when the server advises to ask again
}

// Error names the lock and the lease's end.
func (e *HeldError) Error() string {
	if e.ExpiresAt.IsZero() {
		return fmt.Sprintf("lockclient: %q is busy", e.Lock)
	}
	return fmt.Sprintf("lockclient: %q is held until %s", e.Lock, e.ExpiresAt.UTC().Format(time.RFC3339))
}

// Is reports whether target is [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// LostError says that a lease has ended other than by its holder's release. It
// matches [ErrNotHeld] and its cause.
type LostError struct {
	Token     fence.Token
	Cause     error // ErrExpired, ErrTakenOver, ErrForced, or ErrNotHeld when it isn't known
	Successor int64 // the token that came after, 0 if none is known
}

// Error names the lease, the cause and the successor.
func (e *LostError) Error() string {
	if e.Successor != 0 {
		return fmt.Sprintf("%v: %s, by token %s", e.Cause, e.Token, fence.FormatSeq(e.Successor))
	}
	return fmt.Sprintf("%v: %s", e.Cause, e.Token)
}

// Unwrap returns the cause and [ErrNotHeld].
func (e *LostError) Unwrap() []error { return []error{e.Cause, ErrNotHeld} }

// StatusError is an answer that neither grants nor decides: a key that doesn't
// reach, a request that the server finds wrong, a server that is away.
type StatusError struct {
	Status    int    // of HTTP
	Slug      string // of the problem, such as forbidden; empty if the answer was no problem document
	Detail    string // what to do, by the server
	RequestID string // as it stands in the server's log

	after time.Duration // Retry-After
}

// Error says what the server said.
func (e *StatusError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("server answered %d", e.Status)
	}
	return fmt.Sprintf("server answered %d: %s", e.Status, e.Detail)
}
