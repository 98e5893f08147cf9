package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pawl/internal/gather"

	"github.com/jackc/pgx/v5"
)

// The sweep starts from runs: a lock that was forced, taken by somebody else or deleted doesn't say any more that a
// run died under it. The last column is how long a live lease still lasts, in
// ms by the database's clock.
const sweepListSQL = `
select r.id::text, r.lock, (extract(epoch from live.expires_at - clock_timestamp()) * 1000)::bigint
  from pawl.runs r
  left join pawl.locks live on live.name = r.lock and live.token = r.token and live.grant_id = r.id and live.expires_at > clock_timestamp()
 where r.ended_at is null and (live.name is null or live.expires_at < clock_timestamp() + interval '2 s')
 order by live.expires_at nulls first limit 1000`

// $1 run, $2 its lock. One transaction a run. A lock row that somebody has locked (a guarded transaction is open)
// gives no row: next time. The period may be complete already, or cancelled by a person.
const sweepSQL = `
with l as materialized (select * from pawl.locks where name = $2 for update skip locked
), dead as materialized (
  select r.*, l.grant_id = r.id as mine, l.key as lock_key, l.request_id, l.acquired_at, l.expires_at, l.beats, l.longest_gap
    from pawl.runs r left join l on true
   where r.id = $1::text::uuid and r.ended_at is null
     and case when l.name is null then not exists (select from pawl.locks x where x.name = $2)
              else l.grant_id is distinct from r.id or l.expires_at <= clock_timestamp() end
), lane as materialized (select pawl.lane(array[$2::text]) as ok from dead
), per as (
  update pawl.periods p
     set state = pawl.after('lost', p.attempts, p.max_attempts), reason = 'lost',
         ended_at = case when p.attempts >= p.max_attempts then clock_timestamp() end
    from dead d cross join lane
   where lane.ok and p.job = d.job and p.key = d.key and p.revision = d.revision and p.run = d.id and p.state = 'running'
  returning p.state
), lost as (
  update pawl.runs r
     set ended_at = clock_timestamp(),
         error = case when (select count(*) from per) = 1 then coalesce(
           (select 'released by force: ' || coalesce(a.reason, 'no reason given') from pawl.tenures t
              left join pawl.audit a on a.lock = t.lock and a.token = t.token and a.action = 'force_release'
             where t.lock = r.lock and t.token = r.token and t.how = 'forced' order by a.id desc nulls last limit 1),
           'the lease ended without a word from its holder') end,
         state = coalesce((select p.state from pawl.periods p
           where p.job = r.job and p.key = r.key and p.revision = r.revision and p.run = r.id and p.state in ('complete', 'cancelled')), 'lost')
    from dead d cross join lane where lane.ok and r.id = d.id and r.ended_at is null
  returning r.*
), freed as (
  update pawl.locks k set grant_id = null, holder = null, key = null, expires_at = null, renewed_at = clock_timestamp()
    from dead d join lost on true where k.name = $2 and d.mine
), ended as (
  insert into pawl.tenures (lock, token, grant_id, holder, key, request_id, acquired_at, expires_at, ended_at, how, beats, longest_gap)
  select d.lock, d.token, d.id, d.holder, d.lock_key, d.request_id, d.acquired_at, d.expires_at, d.expires_at, 'expired', d.beats, d.longest_gap
    from dead d join lost on true where d.mine
)
select lost.job, lost.key, lost.attempt, lost.token, coalesce(lost.holder, ''), lost.state, coalesce((select state from per), '') from lost`

const sweepAdvanceSQL = `
select pawl.advance(array[$2::text]) where exists (select from pawl.runs where id = $1::text::uuid and ended_at is not null)`

const sweepDiedSQL = `
select pawl.died(array[r.id]) from pawl.runs r join pawl.periods p on p.job = r.job and p.key = r.key and p.revision = r.revision and p.run = r.id
 where r.id = $1::text::uuid and p.state = 'dead'`

// Backends that still block a lease which ended more than a second ago: their guard has set the name. A holder that
// died inside a statement would block its successor for as long as that runs. The name is the token alone, and after a
// restart every lock that is new gets the same one: a token that is anywhere live is spared.
const terminateSQL = `
select a.pid, pg_terminate_backend(a.pid)
  from (select pid, substr(application_name, 6)::bigint as token from pg_stat_activity
         where datname = current_database() and application_name ~ '^pawl [0-9]{1,18}$' and xact_start < clock_timestamp() - interval '1 s' and pid <> pg_backend_pid()) a
 where exists (select from pawl.locks l where l.token = a.token and coalesce(l.expires_at, l.renewed_at) < clock_timestamp() - interval '1 s')
   and not exists (select from pawl.locks l where l.token = a.token and l.expires_at >= clock_timestamp() - interval '1 s')`

// sweep ends the runs whose lease isn't live and returns when to look again: a second from now, or earlier when a
// lease is known to end earlier.
func (r *Runner) sweep(ctx context.Context) (again time.Duration, err error) {
	again = time.Second
	type dead struct {
		run, lock string
		left      *int64
	}
	rows, err := r.pool.Query(ctx, sweepListSQL)
	if err != nil {
		return again, err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d dead, err error) {
		return d, row.Scan(&d.run, &d.lock, &d.left)
	})
	if err != nil {
		return again, err
	}
	var errs []error // one run that can't be ended must not keep the others from it
	for _, d := range found {
		if d.left != nil {
			again = min(again, time.Duration(max(*d.left, 0)+10)*time.Millisecond)
			continue
		}
		if err := r.sweepRun(ctx, d.run, d.lock); err != nil {
			errs = append(errs, fmt.Errorf("jobs: sweep run %s of %q: %w", d.run, d.lock, err))
			if !gather.Refused(err) {
				break
			}
		}
	}
	return again, errors.Join(append(errs, r.terminate(ctx))...)
}

func (r *Runner) sweepRun(ctx context.Context, run, lock string) error {
	var b pgx.Batch
	died := ""
	b.Queue(sweepSQL, run, lock).Query(func(rows pgx.Rows) error {
		var job, key, holder, state, period string
		var attempt int
		var token int64
		_, err := pgx.ForEachRow(rows, []any{&job, &key, &attempt, &token, &holder, &state, &period}, func() error {
			r.log.WarnContext(ctx, "run swept: its lease had ended", "job", job, "period", key, "run", run, "attempt", attempt,
				"lock", lock, "token", token, "holder", holder, "outcome", state, "period_state", period)
			if period == "dead" {
				r.log.ErrorContext(ctx, "period is dead: no run of it is left", "job", job, "period", key, "runs", attempt, "outcome", stateLost)
				r.metrics.Periods.WithLabelValues(job, "dead", stateLost).Inc()
				died = job
			}
			return nil
		})
		return err
	})
	b.Queue(sweepDiedSQL, run)
	b.Queue(sweepAdvanceSQL, run, lock)
	err := r.transact(ctx, &b)
	if err == nil && died != "" {
		r.tryPauseDead(ctx, died)
	}
	return err
}

func (r *Runner) terminate(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, terminateSQL)
	if err != nil {
		return err
	}
	var pid int32
	var ok bool
	_, err = pgx.ForEachRow(rows, []any{&pid, &ok}, func() error {
		r.log.WarnContext(ctx, "terminated a transaction of a lease that has ended: it blocked the successor", "pid", pid, "terminated", ok)
		return nil
	})
	return err
}

// wakeSweep makes this replica's sweep look at once.
func (r *Runner) wakeSweep() {
	select {
	case r.sweepNow <- struct{}{}:
	default:
	}
}
