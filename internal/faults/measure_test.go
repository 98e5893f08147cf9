package faults_test

import (
	"errors"
	"fmt"
	"time"
)

// struck is what a fault has hit.
type struck struct {
	locks    []string // those that the worker held, or all
	from, to time.Time
}

// hit makes a fault happen until it is over.
func (w *world) hit(f fault) (s struck, err error) {
	var m *member
	if f.kind.server {
		for i := range w.ledger.Jobs {
			s.locks = append(s.locks, fmt.Sprintf("job:ledger-%d", i))
		}
	} else {
		m = w.workers[f.track]
		for _, h := range w.holders() {
			if h.worker == f.track {
				s.locks = append(s.locks, h.lock)
			}
		}
	}
	s.from = time.Now()
	err = f.kind.strike(w, f, m)
	if f.kind.name == "holder stopped" && err == nil {
		s.from = m.stopped
	}
	s.to = time.Now()
	return s, err
}

// surely hits a worker that holds a lock, trying again while the fault misses its aim.
func (w *world) surely(f fault) (s struck, err error) {
	for range 30 {
		if hs := w.holders(); !f.kind.server && len(hs) > 0 && (len(s.locks) > 0 || !holdsAny(hs, f.track)) {
			f.track = hs[0].worker
		}
		s, err = w.hit(f)
		if !errors.Is(err, errMissed) && (err != nil || len(s.locks) > 0) {
			return s, err
		}
		pause(100 * time.Millisecond)
	}
	return s, err
}

func holdsAny(hs []holds, worker int) bool {
	for _, h := range hs {
		if h.worker == worker {
			return true
		}
	}
	return false
}

const (
	// Locks that have a batch from after the fault.
	recoveredSQL = `select count(distinct lock) from witness where lock = any ($1) and pg_xact_commit_timestamp(xmin) > $2`

	// The longest that a lock went without a batch, in ms, counted from the fault on.
	silenceSQL = `
with w as (select lock, pg_xact_commit_timestamp(xmin) as at from witness where lock = any ($1)),
     s as (select at, greatest(lag(at) over (partition by lock order by at), $2) as since from w)
select (1000 * extract(epoch from max(at - since)))::int from s where at > $2 and since <= $3`
)

// recovery waits until every lock that was hit has a batch again and says how long the longest had none.
func (w *world) recovery(s struck) time.Duration {
	w.t.Helper()
	w.await("every lock that was hit has a batch again", func(p *pool) bool {
		return w.number(p, recoveredSQL, s.locks, s.to) == len(s.locks)
	})
	_, p := w.db()
	n := w.number(p, silenceSQL, s.locks, s.from, s.to)
	if n < 0 {
		w.t.Errorf("no recovery is known for %s", s.locks)
	}
	return time.Duration(n) * time.Millisecond
}

// settle lets the rest of the work get done and judges it all.
func (w *world) settle() {
	w.t.Helper()
	for i, m := range w.workers {
		select {
		case <-m.Done():
			w.t.Errorf("worker %d has ended by itself: %v", i, m.Err())
		default:
		}
	}
	w.await("the pace is changed", func(p *pool) bool { return w.ledger.Pace(w.t.Context(), p, 0) == nil })
	w.await("all periods are complete", func(p *pool) bool {
		return w.number(p, `select count(*) from pawl.periods where ended_at is not null`) == w.ledger.Owed()
	})
	_, p := w.db()
	w.await("all runs are ended", func(p *pool) bool { return w.number(p, `select count(*) from pawl.runs where ended_at is null`) == 0 })
	wrong, err := w.ledger.Violations(w.t.Context(), p)
	w.must(err)
	for _, what := range wrong {
		w.t.Error(what)
	}
	seen, err := w.ledger.Seen(w.t.Context(), p)
	w.must(err)
	w.t.Logf("takeovers %d, refusals %d, runs %d for %d periods", seen.Takeovers, seen.Refusals, seen.Runs, w.ledger.Owed())
	w.seen = seen
	if n, err := w.ledger.Deliberate(w.t.Context(), p); err != nil || n != 1 {
		w.t.Errorf("the deliberate violation is counted %d times, want once; %v", n, err)
	}
}
