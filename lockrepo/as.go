package lockrepo

import (
	"context"
	"errors"
	"time"

	"pawl/fence"
)

// As says whose lease to renew or release, by name instead of by grant.
type As struct {
	Lock    string
	Holder  string
	Key     string        // as it was acquired with: the same holder under another key is another caller
	Token   int64         // 0: whichever is current; else it must be
	TTL     time.Duration // of a renewal, 100 ms to 24 h; default Config.TTL
	MaxHold time.Duration // a renewal that long after the lease was acquired is refused; 0: no limit

	RequestID string // the request that asks, for the log; may be empty
}

var errProvisional = errors.New("not built yet")

// RenewAs extends the lease that a.Holder has under a.Key by a.TTL from now.
// It never revives one and never changes the token. [ErrNotFound]: no such lock, or a
// stranger asks for one that was released. [ErrNotHeld]: the lease has expired, was
// released by this its last holder, is another's now while the caller once had
// it, or has reached MaxHold. [ErrMismatch]: it is live, another's, and was
// never the caller's. [ErrPrecondition]: it is the caller's under another token.
func (r *Repo) RenewAs(ctx context.Context, a As) (Info, error) {
	return Info{}, errProvisional
}

// ReleaseAs ends the lease that a.Holder has under a.Key. [ErrNotFound]: there
// is no live lease. [ErrMismatch]: it is another's. [ErrPrecondition]: it is
// the caller's under another token.
func (r *Repo) ReleaseAs(ctx context.Context, a As) error {
	return errProvisional
}

// CheckTarget reports whether tok is its lock's current token with a live
// lease, and the highest token that the target has seen, nil if none. It is
// advice: the answer is old when it arrives.
func (r *Repo) CheckTarget(ctx context.Context, tok fence.Token, target string) (current bool, last *int64, err error) {
	return false, nil, errProvisional
}

// Unknown reports whether err says nothing about the lock: the database is
// away, or the call's outcome is not known.
func Unknown(err error) bool { return false }
