package lockclient

import (
	"context"
	"errors"
	"time"
)

// Hold acquires the lock, runs fn while it renews the lease, then releases it.
// If the lease is lost, fn's context ends with the cause, and Hold answers it.
// If ctx ends first, renewals go on while fn does, for Config.Grace at most;
// then the lease is given up with [ErrGraceOver].
//
// A cancelled context is advice: what fn writes needs a fence that compares
// l.Token.
func (c *Client) Hold(ctx context.Context, lock string, fn func(ctx context.Context, l Lease) error) (err error) {
	l, err := c.Acquire(ctx, lock, c.cfg.TTL)
	if err != nil {
		return err
	}
	held, kept := c.Keep(ctx, l)
	defer kept.Stop()
	defer c.graceAfter(ctx, kept)()
	defer func() { // also when fn panics
		if loss := c.letGo(ctx, kept, err); loss != nil {
			err = errors.Join(err, loss)
		}
	}()
	return fn(held, l)
}

// graceAfter revokes the lease Config.Grace after ctx has ended. The function
// that it returns calls that off.
func (c *Client) graceAfter(ctx context.Context, kept *Kept) func() {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(c.cfg.Grace)
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
func (c *Client) letGo(ctx context.Context, kept *Kept, err error) error {
	loss := kept.Check()
	if errors.Is(loss, ErrSuspect) {
		loss = nil // the release will tell
	}
	kept.Completing()
	l := kept.Lease()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(l.TTL, callTimeout))
	defer cancel()
	rerr := c.Release(ctx, l)
	switch {
	case loss != nil:
	case errors.Is(rerr, ErrNotHeld):
		loss = rerr
	case rerr != nil:
		c.cfg.Logger.WarnContext(ctx, "lock not released, its lease will run out", "token", l.Token, "error", rerr)
	}
	if loss != nil && errors.Is(err, loss) {
		return nil
	}
	return loss
}
