package lockrepo

import (
	"context"
	"errors"
	"time"

	"pawl/fence"
)

// Kept is a lease that the keeper renews.
type Kept struct {
	k    *keeper
	end  context.CancelCauseFunc
	born Instant

	// Under the keeper's lock.
	lease      Lease
	at         int       // place in keeper.all, -1 when it isn't kept any more
	due        time.Time // the next renewal's
	asked      bool      // a renewal is on its way
	completing bool
	suspected  *Instant      // since when the clocks disagree
	sure       chan struct{} // closed when they don't any more, or nobody keeps the lease; nil unless suspected
	loss       error         // what ended it
}

// Keep renews l until Stop. The context that it returns ends when l is lost, a
// little before it would be: with a [*LostError] as its cause, which is
// [ErrExpired], [ErrTakenOver] or [ErrForced]. When ctx ends, so does that
// context, with ctx's cause; but renewals go on until Stop, since the function
// is still running. Keep and Stop cost an insert and a
// context, no goroutine or timer; thousands a second are fine.
func (r *Repo) Keep(ctx context.Context, l Lease) (context.Context, *Kept) {
	return r.keeper.keep(ctx, l)
}

// Completing says that a release or a hand-over is about to be sent: renewals
// stop, and from now on nothing is a loss. Only its parent and Stop end the
// context.
func (h *Kept) Completing() {
	h.k.mu.Lock()
	defer h.k.mu.Unlock()
	h.completing = true
}

// Resume says that the end which Completing announced did not happen: the
// lease is renewed again, at once.
func (h *Kept) Resume() {
	h.k.mu.Lock()
	defer h.k.mu.Unlock()
	if !h.completing {
		return
	}
	h.completing, h.due = false, h.k.clock().at
	h.k.poke(h.due)
}

// Stop says that the lease has ended, or may. Its context ends. Calling it
// again does nothing.
func (h *Kept) Stop() {
	h.k.mu.Lock()
	defer h.k.mu.Unlock()
	if h.at >= 0 && h.completing {
		h.k.m.ended("released", h.k.clock().proven(h.born))
	}
	h.k.drop(h)
	h.end(context.Canceled)
}

// Revoke stops the renewals now and ends the context with cause: the grace is
// over. From then on Check answers cause.
func (h *Kept) Revoke(cause error) {
	h.k.mu.Lock()
	defer h.k.mu.Unlock()
	h.k.finish(h, cause)
}

// Check compares the clocks now. It returns nil, the loss, or [ErrSuspect]
// until a renewal has been answered. Ask it before anything that can't be
// guarded; it is advice, not a fence.
func (h *Kept) Check() error {
	h.k.mu.Lock()
	defer h.k.mu.Unlock()
	return h.check()
}

func (h *Kept) check() error {
	if h.at >= 0 && !h.completing {
		h.k.judge(h, h.k.clock())
	}
	switch {
	case h.loss != nil:
		return h.loss
	case h.suspected != nil:
		return ErrSuspect
	}
	return nil
}

// Sure is [Kept.Check], but while the clocks disagree it waits for the answer
// to the renewal that they have made due, or for the loss; [ErrSuspect] only
// when ctx ends first. That takes one round trip, and at most the margin.
func (h *Kept) Sure(ctx context.Context) error {
	for {
		h.k.mu.Lock()
		err, sure := h.check(), h.sure
		h.k.mu.Unlock()
		if !errors.Is(err, ErrSuspect) || sure == nil {
			return err
		}
		select {
		case <-sure:
		case <-ctx.Done():
			return err
		}
	}
}

// tell lets those go on who wait for the end of a suspicion. The caller holds
// the keeper's lock.
func (h *Kept) tell() {
	if h.sure != nil {
		close(h.sure)
		h.sure = nil
	}
}

// Lease returns the lease as it was last renewed.
func (h *Kept) Lease() Lease {
	h.k.mu.Lock()
	defer h.k.mu.Unlock()
	return h.lease
}

func lostError(tok fence.Token, cause error) error { return &LostError{Token: tok, Cause: cause} }
