package jobs

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	planEvery     = time.Second
	backstopEvery = 5 * time.Second
	progressEvery = time.Second
	tellEvery     = 30 * time.Second // that a loop still fails
	turnTimeout   = 15 * time.Second
)

// loops starts what every replica does beside its runs.
func (r *Runner) loops(ctx context.Context, polling bool) {
	r.loop(ctx, "planner", nil, bounded(func(ctx context.Context) (time.Duration, error) { return jitter(planEvery), r.plan(ctx) }))
	r.busyFor.Go(func() { r.watchPlanner(ctx) })
	r.loop(ctx, "sweep", r.sweepNow, bounded(r.sweep))
	r.loop(ctx, "backstop", nil, bounded(func(ctx context.Context) (time.Duration, error) { return jitter(backstopEvery), r.backstop(ctx) }))
	seen := &watcher{begun: time.Now()}
	r.loop(ctx, "events", nil, bounded(func(ctx context.Context) (time.Duration, error) { return jitter(watchEvery), r.watch(ctx, seen) }))
	r.loop(ctx, "alerts", nil, bounded(func(ctx context.Context) (time.Duration, error) { return jitter(alertEvery), r.queueAlerts(ctx) }))
	r.loop(ctx, "progress", nil, bounded(func(ctx context.Context) (time.Duration, error) { return progressEvery, r.flush(ctx) }))
	if r.cfg.Artifacts != nil {
		r.loop(ctx, "artifacts", nil, r.sweepArtifacts)
	}
	if !polling { // a transaction pooler passes no notification on
		r.loop(ctx, "listener", nil, r.listen)
	}
}

// bounded gives a turn a deadline: on a connection that swallows everything it would hang for ever.
func bounded(turn func(context.Context) (time.Duration, error)) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, turnTimeout)
		defer cancel()
		return turn(ctx)
	}
}

// loop calls turn until ctx ends, as often as turn says or when woken. It tells that turn fails when that begins,
// every half minute, and when it is over.
func (r *Runner) loop(ctx context.Context, name string, wake <-chan struct{}, turn func(context.Context) (time.Duration, error)) {
	r.busyFor.Go(func() {
		var told time.Time
		failing := false
		for {
			again, err := turn(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				if !failing || time.Since(told) > tellEvery {
					r.log.WarnContext(ctx, "the database didn't do what was asked; trying on", "loop", name, "error", err)
					told = time.Now()
				}
				failing, again = true, max(again, jitter(time.Second))
			case failing:
				r.log.InfoContext(ctx, "works again", "loop", name)
				failing = false
			}
			if !wait(ctx, again, wake) {
				return
			}
		}
	})
}

// wait waits for d or a wake-up; false when ctx has ended.
func wait(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-wake:
	}
	return true
}

// jitter keeps replicas that started together apart.
func jitter(d time.Duration) time.Duration { return d*8/10 + rand.N(d*4/10) }

// SKIP LOCKED: it takes rows in no order, and ends take several too. A run that ends at this moment, and a checkpoint that
// isn't committed yet, write their own.
const progressSQL = `
with p as materialized (
  select r.id, p.done, nullif(p.total, 0) as total from unnest($1::text[], $2::bigint[], $3::bigint[]) as p(run, done, total)
    join pawl.runs r on r.id = p.run::uuid
   where r.ended_at is null and r.id = any ($1::text[]::uuid[])
     for update of r skip locked
)
update pawl.runs r set done = p.done, total = p.total from p where r.id = p.id and r.id = any ($1::text[]::uuid[])`

// flush writes the progress of this process's runs, all in one statement.
func (r *Runner) flush(ctx context.Context) error {
	moved := r.live.moved()
	if len(moved) == 0 {
		return nil
	}
	ids, done, total := make([]string, len(moved)), make([]int64, len(moved)), make([]int64, len(moved))
	for i, run := range moved {
		ids[i], done[i], total[i] = run.ID.String(), run.done.Load(), run.total.Load()
	}
	_, err := r.pool.Exec(ctx, progressSQL, ids, done, total)
	return err
}

const (
	waitingSQL = `select exists (select from pawl.lanes where lock = $1 and not_before > clock_timestamp())`
	wakeSQL    = `update pawl.lanes set not_before = null where lock = $1`
)

// listen hears that a lock was released by somebody outside, and lets a delivery that waited for it come at once.
func (r *Runner) listen(ctx context.Context) (time.Duration, error) {
	conn, err := r.direct.Acquire(ctx)
	if err != nil {
		return time.Second, err
	}
	c := conn.Hijack()
	defer c.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is given up
	if _, err := c.Exec(ctx, "listen pawl_released"); err != nil {
		return time.Second, err
	}
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return time.Second, err
		}
		if err := r.wake(ctx, n.Payload); err != nil {
			return time.Second, err
		}
	}
}

func (r *Runner) wake(ctx context.Context, lock string) error {
	var waiting bool
	if err := r.pool.QueryRow(ctx, waitingSQL, lock).Scan(&waiting); err != nil || !waiting {
		return err
	}
	return r.transact(ctx, laneBatch(lock, func(b *batch) { b.Queue(wakeSQL, lock) }))
}
