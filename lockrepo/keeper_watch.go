package lockrepo

import "time"

// watch is the watchdog. It never waits for the database.
func (k *keeper) watch() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-k.done:
			return
		case <-k.wake:
		case <-timer.C:
		}
		timer.Reset(k.look())
	}
}

// look judges all leases, collects what is due, and returns how long nothing
// will be.
func (k *keeper) look() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock()
	next := now.at.Add(time.Hour) // with no lease, nothing to look at
	k.least = maxTTL
	for i := len(k.all) - 1; i >= 0; i-- {
		h := k.all[i]
		if h.completing {
			continue
		}
		left := k.judge(h, now)
		if h.at < 0 {
			continue // gone; the one that took its place has been judged
		}
		k.least = min(k.least, h.lease.TTL)
		if !h.asked && !h.due.After(now.at) {
			h.asked, k.ready = true, append(k.ready, h)
		}
		next = earliest(next, now.at.Add(min(left, watchEvery, h.lease.TTL/10)))
		if !h.asked {
			next = earliest(next, h.due)
		}
	}
	if len(k.ready) > 0 {
		signal(k.beats)
	}
	k.next = next
	return max(next.Sub(now.at), time.Millisecond)
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// judge ends h if it can't be trusted any more, and suspects it if only the
// wall clock, which a hand can set, says so. It returns how long h may still be
// trusted.
func (k *keeper) judge(h *Kept, now Instant) time.Duration {
	left := h.lease.left(now)
	if now.ahead(h.lease.sent) > h.lease.margin {
		k.suspect(h, now)
	}
	if h.suspected != nil && now.wall(h.lease.sent) >= h.lease.trusted() {
		left = min(left, h.lease.margin-now.proven(*h.suspected))
	}
	if left <= 0 {
		k.finish(h, lostError(h.lease.Token, ErrExpired))
	}
	return left
}

// suspect makes a renewal due at once.
func (k *keeper) suspect(h *Kept, now Instant) {
	if h.suspected != nil {
		return
	}
	h.suspected, h.sure, h.due = &now, make(chan struct{}), now.at
	k.poke(now.at)
}
