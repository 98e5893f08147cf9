package lockclient

import (
	"context"
	"errors"
	"time"
)

const (
	watchEvery = time.Second           // the watchdog looks at least this often
	minCall    = 50 * time.Millisecond // no call to the server gets less
)

// Keep renews l at a third of its TTL until Stop. The context that it returns
// ends when l is lost, a little before it would be: with a [*LostError] as its
// cause, which is [ErrExpired], [ErrTakenOver] or [ErrForced]. When ctx ends,
// so does that context, with ctx's cause; but renewals go on until Stop, since
// the function is still running.
//
// A lease has two goroutines: one looks at the clocks and never waits for the
// network, the other asks.
func (c *Client) Keep(ctx context.Context, l Lease) (context.Context, *Kept) {
	held, end := context.WithCancelCause(ctx)
	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	h := &Kept{
		c: c, end: end, stop: stop, done: asking.Done(), lease: l, due: l.sent.At.Add(l.TTL / 3),
		wake: make(chan struct{}, 1), beats: make(chan struct{}, 1),
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.judge(c.now()); h.loss != nil {
		return held, h
	}
	go h.watch()
	go h.send(asking)
	return held, h
}

// watch is the watchdog. It never waits for the server.
func (h *Kept) watch() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-h.done:
			return
		case <-h.wake:
		case <-timer.C:
		}
		timer.Reset(h.look())
	}
}

// look judges the lease, makes a renewal go out when it is due, and returns how
// long there is nothing to look at.
func (h *Kept) look() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.completing || h.loss != nil {
		return time.Hour // Stop follows, or Resume
	}
	now := h.c.now()
	left := h.judge(now)
	if !h.asked && !h.due.After(now.At) {
		h.asked = true
		signal(h.beats)
	}
	next := min(left, watchEvery, h.lease.TTL/10)
	if !h.asked {
		next = min(next, h.due.Sub(now.At))
	}
	return max(next, time.Millisecond)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// send asks for a renewal whenever the watchdog says so.
func (h *Kept) send(ctx context.Context) {
	for tries := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-h.beats:
		}
		if h.beat(ctx, tries) {
			tries = 0
		} else {
			tries++
		}
	}
}

// beat asks once, after so many tries in vain. It reports whether that was
// answered.
func (h *Kept) beat(ctx context.Context, tries int) (answered bool) {
	l := h.Lease()
	sent := h.c.now()
	// An answer that is late is worth less than another try.
	ctx, cancel := context.WithTimeout(ctx, max(min(callTimeout, l.TTL/3, l.left(sent)), minCall))
	defer cancel()
	next, err := h.c.renewOnce(ctx, l)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = false
	switch {
	case h.completing || h.loss != nil:
	case errors.Is(err, ErrNotHeld):
		h.finish(err)
	case err != nil:
		h.unanswered(ctx, tries, err)
		return false
	default:
		h.decide(next)
	}
	return true
}

// unanswered asks again, soon but not at once. It logs the first of a row.
func (h *Kept) unanswered(ctx context.Context, tries int, err error) {
	after, _ := passing(err)
	most := min(h.lease.TTL/10, maxPause)
	h.due = h.c.now().At.Add(min(after, most) + pause(tries, most))
	signal(h.wake)
	if tries == 0 {
		h.c.cfg.Logger.WarnContext(ctx, "lockclient: renewal not answered, asking again until the lease ends", "token", h.lease.Token, "error", err)
	}
}

// decide applies an answer.
func (h *Kept) decide(next Lease) {
	last, back := h.lease, h.c.now()
	// By how much the database's clock has gone further than ours since its last
	// answer: then we may have stood still.
	drift := next.renewed.Sub(last.renewed) - back.Proven(last.sent)
	if last.renewed.IsZero() || next.renewed.IsZero() {
		drift = 0
	}
	h.lease, h.due, h.suspected = next, next.sent.At.Add(next.TTL/3), nil
	h.tell()
	if drift > next.margin {
		h.suspect(back)
	}
	signal(h.wake)
}
