package main

import (
	"context"
	"errors"
	"time"

	"pawl/fence"
	"pawl/internal/guardian"
	"pawl/lockrepo"
	"pawl/lockrepo/lockclient"
)

const (
	backWithin = 5 * time.Second // to give a lease back, while it lasts
	backLate   = time.Second     // when it doesn't any more
)

// settle ends the lease and says how the command has ended.
func (c *cli) settle(ctx context.Context, f *runFlags, l loan, r guardian.Result, loss error) error {
	if r.Left {
		c.p.note("pawl: the command had left processes running, which were ended: a lock is held for as long as its command runs, no longer")
	}
	switch {
	case r.Why == guardian.Unstarted:
		return errors.Join(noCommandRun(f.args[0], &coded{r.Code, errors.New(r.Err)}), c.giveBack(ctx, l))
	case loss != nil, r.Why == guardian.Deadline, r.Why == guardian.Killed:
		return c.lost(ctx, f, l, loss)
	case r.Why == guardian.Unguarded:
		c.p.note("pawl: the guardian was killed, and the command with it; run it again: its work under lock %s may be half done", named(l.token()))
	case r.Code == 0 && f.once != "":
		return c.finishOnce(ctx, f, l)
	}
	if err := c.giveBack(ctx, l); errors.Is(err, fence.ErrNotHeld) {
		return c.lost(ctx, f, l, err)
	}
	return codedEnd(r.Code)
}

func codedEnd(code int) error {
	if code == 0 {
		return nil
	}
	return said(code)
}

// lost says why, and frees the lock if the lease goes on without a command.
func (c *cli) lost(ctx context.Context, f *runFlags, l loan, loss error) error {
	c.p.note("pawl: lease lost on lock %s: %s; no process of the command is left; see: pawl lock history %s, and run it again", named(l.token()), whyLost(loss), clean(f.lock))
	if !errors.Is(loss, fence.ErrNotHeld) {
		ctx, cancel := context.WithTimeout(ctx, backLate)
		defer cancel()
		_ = l.release(ctx) // or it runs out
	}
	return said(f.lost)
}

// whyLost is in words. The lease is named before.
func whyLost(loss error) string {
	switch {
	case is(loss, lockrepo.ErrForced, lockclient.ErrForced):
		return "it was released by force"
	case is(loss, lockrepo.ErrTakenOver, lockclient.ErrTakenOver):
		return "it has expired, and somebody else has the lock"
	case loss == nil, is(loss, lockrepo.ErrExpired, lockclient.ErrExpired):
		return "it was not renewed in time"
	}
	return clean(withoutRoom(loss))
}

// giveBack releases the lock. An error is a lease that had ended before; without an answer it will run out.
func (c *cli) giveBack(ctx context.Context, l loan) error {
	ctx, cancel := context.WithTimeout(ctx, min(max(l.left(), backLate), backWithin))
	defer cancel()
	err := l.release(ctx)
	if err == nil || errors.Is(err, fence.ErrNotHeld) {
		return err
	}
	c.p.note("pawl: lock %s was not released, and is free when its lease has run out: %s", named(l.token()), clean(withoutRoom(err)))
	return nil
}

// finishOnce asks until it is answered, or the lease has run out.
func (c *cli) finishOnce(ctx context.Context, f *runFlags, l loan) error {
	ctx, cancel := context.WithTimeout(ctx, max(l.left(), backLate))
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := l.finish(ctx, f.once)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fence.ErrNotHeld):
			return c.lost(ctx, f, l, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.p.note("pawl: the command has ended with exit code 0 under lock %s, but whether that is noted for %q isn't known: %s; look before you run it again",
				named(l.token()), clean(f.once), clean(withoutRoom(err)))
			return said(f.lost)
		}
	}
}
