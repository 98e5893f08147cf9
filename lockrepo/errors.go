package lockrepo

import (
	"errors"
	"fmt"
	"time"

	"pawl/fence"
)

var (
	// ErrHeld matches every [*HeldError].
	ErrHeld = errors.New("lockrepo: lock is held")
	// ErrNotHeld says that the lease has ended. It is [fence.ErrNotHeld] and
	// matches every [*LostError].
	ErrNotHeld = fence.ErrNotHeld
	// ErrEnded says that this grant is over: its id can't be granted again.
	ErrEnded = errors.New("lockrepo: grant has ended; use a new grant id")
	// ErrNotFound says that there is no lock of that name.
	ErrNotFound = errors.New("lockrepo: no such lock")
	// ErrInput matches every error about what the caller gave.
	ErrInput = errors.New("lockrepo: bad input")
	// ErrReused says that an idempotency key has come back with another request.
	ErrReused = errors.New("lockrepo: idempotency key was used for another request; use a new key")
	// ErrMismatch says that the lease is live and somebody else's: another
	// holder's, or the same holder's under another key.
	ErrMismatch = errors.New("lockrepo: lock is held by another holder or key")
	// ErrPrecondition says that the token given is not the current one.
	ErrPrecondition = errors.New("lockrepo: token is not the current one")
	// ErrExpired is the cause of a loss by time.
	ErrExpired = errors.New("lockrepo: lease expired")
	// ErrTakenOver is the cause of a loss to a successor.
	ErrTakenOver = errors.New("lockrepo: lock taken over")
	// ErrForced is the cause of a loss to an operator's forced release.
	ErrForced = errors.New("lockrepo: lease released by force")
	// ErrSuspect says that the clocks disagree: start nothing outside the
	// database until a renewal has been answered.
	ErrSuspect = errors.New("lockrepo: clocks disagree, lease not yet confirmed")
	// ErrGraceOver is the cause with which Hold revokes a lease whose function
	// goes on after its context has ended.
	ErrGraceOver = errors.New("lockrepo: function still running after the grace period")
	// ErrClosed is the cause for leases that are still kept when the Repo closes.
	ErrClosed = errors.New("lockrepo: closed")
)

// inputError is a sentence about what the caller gave.
type inputError struct{ sentence string }

func (e inputError) Error() string { return e.sentence }

// Is reports whether target is [ErrInput].
func (e inputError) Is(target error) bool { return target == ErrInput }

func badInput(format string, args ...any) error { return inputError{fmt.Sprintf(format, args...)} }

// Unknown reports whether err says nothing about the lock: the database gave
// no answer, or none that counts, and what was asked may have been done all the
// same. It is false for nil, for bad input and for the answers of the protocol.
func Unknown(err error) bool {
	if err == nil {
		return false
	}
	for _, answer := range []error{
		ErrHeld, ErrNotHeld, ErrEnded, ErrNotFound, ErrReused, ErrMismatch, ErrPrecondition, ErrInput,
	} {
		if errors.Is(err, answer) {
			return false
		}
	}
	return true
}

// HeldError says who holds a lock. Holder is empty, and ExpiresAt zero, where
// the last holder has gone and a transaction still has the row.
type HeldError struct {
	Lock      string
	Holder    string
	Token     int64     // the lock's latest, 0 if it has none
	ExpiresAt time.Time // by the database's clock; may be past while a guarded transaction drains
}

// Error names the lock, its holder, its token and its end.
func (e *HeldError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("lockrepo: %q is busy: an open transaction has it", e.Lock)
	}
	return fmt.Sprintf("lockrepo: %q is held by %q with token %s until %s",
		e.Lock, e.Holder, fence.FormatSeq(e.Token), e.ExpiresAt.UTC().Format(time.RFC3339))
}

// Is reports whether target is [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// LostError says that a lease has ended other than by its holder's release. It
// matches [ErrNotHeld] and its cause.
type LostError struct {
	Token     fence.Token
	Cause     error // ErrExpired, ErrTakenOver, ErrForced or ErrNotHeld
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
