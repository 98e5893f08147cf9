package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/gather"
)

const (
	needsSQL = `
select s.job, coalesce(s.definition ->> 'period', ''), n.job
  from pawl.schedules s cross join lateral jsonb_array_elements_text(s.definition -> 'needs') n (job) where s.retired_at is null`

	// Which periods of a job wait for nothing any more, or for something else. The oldest come first: they were let go by
	// completions that come first.
	wakeableSQL = `
select p.lock, p.scheduled_at from pawl.periods p
 where p.job = $1 and p.waits is not null and p.ended_at is null and p.state = 'open'
   and p.scheduled_at <= coalesce((select max(q.scheduled_at) from pawl.periods q where q.job = $1 and q.key = $2), 'infinity')
   and pawl.waits_for(p.job, p.key, p.scheduled_at, p.origin) is distinct from p.waits
 order by p.scheduled_at limit 1000`

	waitingJobsSQL = `select distinct job from pawl.periods where waits is not null`
)

// loadNeeds reads which jobs need which: of all that are stored, since another process may have them.
func (r *Runner) loadNeeds(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, needsSQL)
	if err != nil {
		return err
	}
	needed := map[string][]string{}
	var job, period, need string
	_, err = pgx.ForEachRow(rows, []any{&job, &period, &need}, func() error { needed[need] = append(needed[need], job); return nil })
	if err == nil {
		r.needed.Store(&needed)
	}
	return err
}

// dependents are the jobs that need a job.
func (r *Runner) dependents(job string) []string {
	if m := r.needed.Load(); m != nil {
		return (*m)[job]
	}
	return nil
}

// wakeDependents lets go what waited for a period that has just been completed: after its commit, and before the run that
// follows it in this process ends, so that dependents go on in the order of what they need. What is missed here, the
// backstop finds.
func (r *Runner) wakeDependents(ctx context.Context, job, key string) {
	for _, d := range r.dependents(job) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		if err := r.rewait(ctx, d, key); err != nil {
			r.log.WarnContext(ctx, "what waited for the period is not let go yet: the backstop does it", "job", d, "needs", job, "period", key, "error", err)
		}
		cancel()
	}
}

// rewait judges anew what a job's periods wait for, those up to a key or, if that is empty, all. Older ones are judged too:
// if a completion was not heard of, its period must not come after this one's.
func (r *Runner) rewait(ctx context.Context, job, key string) error {
	rows, err := r.pool.Query(ctx, wakeableSQL, job, key)
	if err != nil {
		return err
	}
	var locks []string
	var lock string
	var at, last time.Time
	if _, err := pgx.ForEachRow(rows, []any{&lock, &at}, func() error { locks, last = append(locks, lock), at; return nil }); err != nil || len(locks) == 0 {
		return err
	}
	slices.Sort(locks)
	locks = slices.Compact(locks)
	var b batch
	b.Queue(laneSQL, locks)
	b.Queue(rewaitSQL, job, locks, last)
	b.Queue(leaveSQL, locks)
	return r.transact(ctx, &b)
}

// rewaitAll finds what was missed: a process died between a completion and what it lets go, or a definition has changed.
func (r *Runner) rewaitAll(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, waitingJobsSQL)
	if err != nil {
		return err
	}
	jobs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var errs []error
	for _, job := range jobs {
		if err := r.rewait(ctx, job, ""); err != nil {
			errs = append(errs, fmt.Errorf("jobs: let go what waits of %q: %w", job, err))
			if !gather.Refused(err) {
				break
			}
		}
	}
	return errors.Join(errs...)
}

const (
	tooLateLocksSQL = `
select distinct lock from pawl.periods where start_by <= clock_timestamp() and ended_at is null and state = 'open' and attempts = 0 limit 1000`

	tooLateSQL = `
update pawl.periods set state = 'missed', reason = 'too_late', ended_at = clock_timestamp(), waits = null
 where lock = $1 and ended_at is null and state = 'open' and attempts = 0 and start_by <= clock_timestamp()
returning job, key`
)

// expire records the periods of a lock that have not started in time as missed.
func (r *Runner) expire(ctx context.Context, lock string) error {
	type late struct{ job, key string }
	var missed []late
	err := r.transact(ctx, laneBatch(lock, func(b *batch) {
		b.Queue(tooLateSQL, lock).Query(func(rows pgx.Rows) (err error) {
			missed, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (x late, err error) { return x, row.Scan(&x.job, &x.key) })
			return err
		})
	}))
	if err != nil {
		return err
	}
	for _, x := range missed {
		r.metrics.Periods.WithLabelValues(x.job, "missed", "too_late").Inc()
		r.log.WarnContext(ctx, "period will not run: it could not start in time", "job", x.job, "period", x.key, "reason", "too_late")
	}
	return nil
}

// expireAll finds periods that wait for something and are too late meanwhile.
func (r *Runner) expireAll(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, tooLateLocksSQL)
	if err != nil {
		return err
	}
	locks, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, lock := range locks {
		err = errors.Join(err, r.expire(ctx, lock))
	}
	return err
}
