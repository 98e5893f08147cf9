package lockrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

const (
	waiterTTL   = 15 * time.Second // so long does a waiter count that says no more
	waiterAgain = waiterTTL / 3    // how often it says so
)

// oftenEnough is how long a waiter that hears nothing lets pass: a guarded
// transaction that drains, or a sweep, notifies nobody.
func oftenEnough() time.Duration { return time.Second + rand.N(time.Second) }

// AcquireWait is [Repo.AcquireRequest] that asks again for at most that long:
// when the lock is released, when its lease ends, and every second or two.
// Then it answers the last [*HeldError]. Who has waited longest has no
// precedence. It is told of a release over one connection that all waiters of
// r share; behind a pooler, where there can't be one, it only asks. Every
// other error ends the wait.
func (r *Repo) AcquireWait(ctx context.Context, q Request, atMost time.Duration) (Lease, error) {
	start := time.Now()
	l, err := r.acquireSince(ctx, q, start)
	if !errors.Is(err, ErrHeld) || atMost <= 0 {
		return l, err
	}
	over := time.NewTimer(time.Until(start.Add(atMost)))
	defer over.Stop()
	w := &waiter{r: r, id: uuid.New(), q: q}
	defer w.gone(ctx)
	released, leave := r.waits.join(q.Lock) //nolint:contextcheck // the listener outlives who has started it
	defer leave()
	for {
		if err := w.here(ctx); err != nil {
			return Lease{}, err
		}
		// Only now: a release before we were listening told nobody.
		if l, err = r.acquireSince(ctx, q, start); !errors.Is(err, ErrHeld) {
			return l, err
		}
		again := time.NewTimer(w.patience(err))
		select {
		case <-released:
		case <-again.C:
		case <-over.C:
			again.Stop()
			return Lease{}, err
		case <-ctx.Done():
			again.Stop()
			return Lease{}, fmt.Errorf("lockrepo: wait for %q: %w", q.Lock, context.Cause(ctx))
		}
		again.Stop()
	}
}

// waiter is one row of those who wait: a release notifies for its sake.
type waiter struct {
	r  *Repo
	id uuid.UUID
	q  Request

	now time.Time // the database's clock
	at  time.Time // when it was read; zero: the row isn't written yet
}

// $1 id, $2 lock, $3 holder, $4 for how long, in µs. Those of the lock that are long gone are cleared away.
const hereSQL = `
with gone as (
  delete from pawl.waiters where id in (
    select id from pawl.waiters where lock = $2::text and until < clock_timestamp() - interval '1 min' for update skip locked)
)
insert into pawl.waiters as w (id, lock, holder, until)
values ($1::text::uuid, $2::text, $3::text, clock_timestamp() + $4::bigint * interval '1 us')
on conflict (id) do update set until = excluded.until
returning clock_timestamp()`

const goneSQL = `delete from pawl.waiters where id = $1::text::uuid returning lock`

// here writes the row, or says again that it counts.
func (w *waiter) here(ctx context.Context) error {
	if !w.at.IsZero() && time.Since(w.at) < waiterAgain {
		return nil
	}
	args := []any{w.id.String(), w.q.Lock, cmp.Or(w.q.Holder, w.r.cfg.Holder), waiterTTL.Microseconds()}
	if err := w.r.ask(ctx, query{hereSQL, args, single(&w.now)}); err != nil {
		return fmt.Errorf("lockrepo: wait for %q: %w", w.q.Lock, err)
	}
	w.at = time.Now()
	return nil
}

// farewell bounds what nobody waits for any more.
const farewell = time.Second

// gone deletes the row. If it can't be in time, it ceases to count by itself.
func (w *waiter) gone(ctx context.Context) {
	if w.at.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	var lock string
	if err := w.r.ask(ctx, query{goneSQL, []any{w.id.String()}, single(&lock)}); err != nil {
		w.r.cfg.Logger.DebugContext(ctx, "waiter's row not deleted", "lock", w.q.Lock, "error", err)
	}
}

// patience is how long to wait before asking again, by the lease that is in
// the way.
func (w *waiter) patience(err error) time.Duration {
	usual := w.r.waits.poll()
	var held *HeldError
	if !errors.As(err, &held) || held.ExpiresAt.IsZero() {
		return usual
	}
	left := held.ExpiresAt.Sub(w.now) - time.Since(w.at) + time.Millisecond
	if left <= 0 { // a guarded transaction drains
		return usual
	}
	return min(left, usual)
}
