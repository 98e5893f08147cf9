package lockrepo

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Hold acquires the lock, with one try, runs fn while it renews the lease, then
// releases it. If the lease is lost, fn's context ends with the cause, and Hold
// answers it. If ctx ends first, renewals go on while fn does, for Config.Grace
// at most; then the lease is given up with [ErrGraceOver].
//
// A cancelled context is advice: what fn writes needs fence.Do or fence.Guard
// with l.Token.
func (r *Repo) Hold(ctx context.Context, lock string, fn func(ctx context.Context, l Lease) error) error {
	l, err := r.Acquire(ctx, lock, r.cfg.TTL)
	if err != nil {
		return err
	}
	return r.hold(ctx, l, fn)
}

func (r *Repo) hold(ctx context.Context, l Lease, fn func(ctx context.Context, l Lease) error) (err error) {
	held, kept := r.Keep(ctx, l)
	defer kept.Stop()
	defer r.graceAfter(ctx, kept)()
	defer func() { // also when fn panics
		if loss := r.letGo(ctx, kept, err); loss != nil {
			err = errors.Join(err, loss)
		}
	}()
	return fn(held, l)
}

// graceAfter revokes the lease Config.Grace after ctx has ended. The function
// that it returns calls that off.
func (r *Repo) graceAfter(ctx context.Context, kept *Kept) func() {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(r.cfg.Grace)
		defer t.Stop()
		select {
		case <-over:
		case <-t.C:
			kept.Revoke(ErrGraceOver)
		}
	})
	return func() { stop(); close(over) }
}

// letGo releases what Hold held. It returns the loss, unless err tells of it.
func (r *Repo) letGo(ctx context.Context, kept *Kept, err error) error {
	loss := kept.Check()
	if errors.Is(loss, ErrSuspect) {
		loss = nil // the release will tell
	}
	kept.Completing()
	l := kept.Lease()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(l.TTL, callTimeout))
	defer cancel()
	how, _, rerr := r.release(ctx, l.Token.Lock, &l.Token.Seq, l.Grant.String())
	switch {
	case loss != nil:
	case errors.Is(rerr, pgx.ErrNoRows):
		loss = r.whyLost(ctx, l)
	case rerr == nil && how == "expired":
		loss = lostError(l.Token, ErrExpired)
	case rerr != nil:
		r.cfg.Logger.WarnContext(ctx, "lock not released, its lease will run out", "token", l.Token, "error", rerr)
	}
	if loss != nil && errors.Is(err, loss) {
		return nil
	}
	return loss
}
