package lockrepo

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const minCall = 50 * time.Millisecond // no call to the database gets less

// retry is how long an unanswered renewal waits before it is asked again.
func retry(ttl time.Duration) time.Duration { return min(ttl/10, time.Second) }

// send is the beater.
func (k *keeper) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.beats:
		}
		for hs := k.take(); len(hs) > 0; hs = k.take() {
			k.sendBatch(ctx, hs)
		}
	}
}

// take returns the most urgent of what is due, one statement's worth.
func (k *keeper) take() []*Kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ready = slices.DeleteFunc(k.ready, func(h *Kept) bool { return !k.wanted(h) })
	slices.SortFunc(k.ready, func(a, b *Kept) int { return cmp.Compare(end(a).UnixNano(), end(b).UnixNano()) })
	n := min(len(k.ready), maxBeat)
	hs := slices.Clone(k.ready[:n])
	k.ready = slices.Delete(k.ready, 0, n)
	return hs
}

// end is when h can't be trusted any more, roughly: only for the order.
func end(h *Kept) time.Time { return h.lease.sent.clock.Add(h.lease.trusted()) }

// wanted reports whether h should still be asked for; if not, it isn't on its
// way any more.
func (k *keeper) wanted(h *Kept) bool {
	if h.at >= 0 && !h.completing {
		return true
	}
	h.asked = false
	return false
}

func (k *keeper) sendBatch(ctx context.Context, hs []*Kept) {
	ls, limit := k.snapshot(hs)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sent := k.clock()
	out, now, err := k.beat.batch(ctx, ls)
	k.mu.Lock()
	defer k.mu.Unlock()
	back := k.clock()
	k.answered(ctx, err)
	drift := k.drift(now, sent, back)
	for i, h := range hs {
		switch {
		case !k.wanted(h):
		case err != nil:
			k.unanswered(h, sent, back)
		case out[i] == verdict{}:
			k.locked = append(k.locked, h)
			signal(k.asks)
		default:
			k.decide(h, out[i], sent, back, drift)
		}
	}
}

// snapshot also returns how long the call may take: no longer than the shortest
// lease of all, in this call or not, can wait for its beat.
func (k *keeper) snapshot(hs []*Kept) ([]Lease, time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ls := make([]Lease, len(hs))
	for i, h := range hs {
		ls[i] = h.lease
	}
	return ls, max(min(callTimeout, k.least/3), minCall)
}

// ask is the asker: leases whose row somebody has locked, one after the other.
// Each waits for a slice of its time only, then comes back with the next beat,
// so that one row can't cost another its lease.
func (k *keeper) ask(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.asks:
		}
		for h := k.takeLocked(); h != nil; h = k.takeLocked() {
			k.askOne(ctx, h)
		}
	}
}

func (k *keeper) takeLocked() *Kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.locked) > 0 {
		h := k.locked[0]
		k.locked = slices.Delete(k.locked, 0, 1)
		if k.wanted(h) {
			return h
		}
	}
	return nil
}

func (k *keeper) askOne(ctx context.Context, h *Kept) {
	ls, _ := k.snapshot([]*Kept{h})
	sent := k.clock()
	ctx, cancel := context.WithTimeout(ctx, max(min(ls[0].left(sent), retry(ls[0].TTL)), minCall))
	defer cancel()
	out, now, err := k.beat.one(ctx, ls[0])
	k.mu.Lock()
	defer k.mu.Unlock()
	back := k.clock()
	if !k.wanted(h) {
		return
	}
	if err != nil || out == (verdict{}) {
		k.unanswered(h, sent, back)
		return
	}
	k.decide(h, out, sent, back, k.drift(now, sent, back))
}

// unanswered asks again, soon but not at once.
func (k *keeper) unanswered(h *Kept, sent, back Instant) {
	h.asked, h.due = false, sent.at.Add(retry(h.lease.TTL))
	if h.due.Before(back.at) {
		h.due = back.at
	}
	k.poke(h.due)
}

// decide applies an answer.
func (k *keeper) decide(h *Kept, v verdict, sent, back Instant, drift time.Duration) {
	if v.lost != nil {
		k.finish(h, v.lost)
		return
	}
	old := h.lease.sent
	k.m.renewDelay.Observe(max(back.at.Sub(h.due), 0).Seconds())
	k.m.remaining.Observe(1 - back.proven(old).Seconds()/h.lease.TTL.Seconds())
	h.lease.sent, h.lease.ExpiresAt = sent, v.expires
	h.asked, h.due, h.suspected = false, sent.at.Add(h.lease.TTL/3), nil
	h.tell()
	if drift > h.lease.margin { // we may have stood still: once more, over a shorter time
		k.suspect(h, back)
		return
	}
	k.poke(h.due)
}

// drift is by how much the database's clock has gone further than ours since
// its last answer. now is zero if there is no answer.
func (k *keeper) drift(now time.Time, sent, back Instant) time.Duration {
	if now.IsZero() {
		return 0
	}
	last := k.told
	k.told.now, k.told.sent = now, sent
	if last.now.IsZero() {
		return 0
	}
	return now.Sub(last.now) - back.proven(last.sent)
}

// answered logs once when the database goes away, and once when it is back.
func (k *keeper) answered(ctx context.Context, err error) {
	switch away := err != nil && ctx.Err() != context.Canceled; {
	case away && !k.away:
		k.log.WarnContext(ctx, "heartbeat not answered, asking again until the leases end", "error", err)
	case !away && k.away:
		k.log.InfoContext(ctx, "heartbeats are answered again")
	default:
		return
	}
	k.away = err != nil
}
