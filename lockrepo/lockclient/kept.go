package lockclient

import (
	"context"
	"errors"
	"sync"
	"time"

	"pawl/internal/clocks"
)

// Kept is a lease that is renewed until Stop.
type Kept struct {
	c     *Client
	end   context.CancelCauseFunc // of the holder's context
	stop  context.CancelFunc      // of the two goroutines
	done  <-chan struct{}
	wake  chan struct{} // for the watchdog: something is due earlier
	beats chan struct{} // for the one who asks: a renewal is due

	mu         sync.Mutex
	lease      Lease
	due        time.Time // the next renewal's
	asked      bool      // a renewal is on its way
	completing bool
	suspected  *clocks.Reading // since when the clocks disagree
	sure       chan struct{}   // closed when they don't any more, or nobody keeps the lease; nil unless suspected
	loss       error           // what ended it
}

// Completing says that a release is about to be sent: renewals stop, and from
// now on nothing is a loss. Only its parent and Stop end the context.
func (h *Kept) Completing() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.completing = true
}

// Stop says that the lease has ended, or may. Its context ends. Calling it
// again does nothing.
func (h *Kept) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell()
	h.stop()
	h.end(context.Canceled)
}

// Revoke stops the renewals now and ends the context with cause. From then on
// Check answers cause.
func (h *Kept) Revoke(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.finish(cause)
}

// Check compares the clocks now. It returns nil, the loss, or [ErrSuspect]
// until a renewal has been answered. Ask it before anything that can't be
// fenced; it is advice, not a fence.
func (h *Kept) Check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.check()
}

func (h *Kept) check() error {
	if h.loss == nil && !h.completing {
		h.judge(h.c.now())
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
// when ctx ends first.
func (h *Kept) Sure(ctx context.Context) error {
	for {
		h.mu.Lock()
		err, sure := h.check(), h.sure
		h.mu.Unlock()
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

// Lease returns the lease as it was last renewed.
func (h *Kept) Lease() Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease
}

// judge ends the lease if it can't be trusted any more, and suspects it if only
// the wall clock, which a hand can set, says so. It returns how long it may
// still be trusted.
func (h *Kept) judge(now clocks.Reading) time.Duration {
	left := h.lease.left(now)
	if now.Ahead(h.lease.sent) > h.lease.margin {
		h.suspect(now)
	}
	if h.suspected != nil && now.ByWall(h.lease.sent) >= h.lease.trusted() {
		left = min(left, h.lease.margin-now.Proven(*h.suspected))
	}
	if left <= 0 {
		h.finish(&LostError{Token: h.lease.Token, Cause: ErrExpired})
	}
	return left
}

// suspect makes a renewal due at once.
func (h *Kept) suspect(now clocks.Reading) {
	if h.suspected != nil {
		return
	}
	h.suspected, h.sure, h.due = &now, make(chan struct{}), now.At
	signal(h.wake)
}

// finish ends the lease as lost.
func (h *Kept) finish(cause error) {
	if h.loss != nil {
		return
	}
	h.loss = cause
	h.tell()
	h.stop()
	h.end(cause)
}

// tell lets those go on who wait for the end of a suspicion.
func (h *Kept) tell() {
	if h.sure != nil {
		close(h.sure)
		h.sure = nil
	}
}
