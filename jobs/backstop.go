package jobs

import (
	"context"
	"errors"
	"fmt"

	"pawl/internal/gather"

	"github.com/jackc/pgx/v5"
)

// Lanes whose head has no live delivery. pawl.advance judges again under the lane.
const backstopListSQL = `
select p.lock from pawl.periods p left join pawl.lanes n on n.lock = p.lock left join pawl.river_job j on j.id = n.delivery
 where p.ended_at is null and p.waits is null and p.state = 'open' and not exists (select from pawl.runs r where r.lock = p.lock and r.ended_at is null)
   and not exists (select from pawl.periods f where f.lock = p.lock and f.shards is not null and f.ended_at is null and f.state = 'running')
 group by p.lock
having not coalesce(bool_or(j.state in ('available', 'scheduled', 'pending', 'retryable')
                         or j.state = 'running' and j.attempted_at > clock_timestamp() - pawl.start_grace()), false)
 limit 1000`

// River rows that are running with nobody behind them: fetched longer ago than start may take, and no running run
// came of it.
const backstopRiverSQL = `
update pawl.river_job j set state = 'discarded', finalized_at = clock_timestamp()
  from (select id from pawl.river_job
         where queue = 'pawl' and state = 'running' and attempted_at < clock_timestamp() - pawl.start_grace()
         order by id for update skip locked) old
 where j.id = old.id and not exists (select from pawl.runs r where r.delivery = j.id and r.ended_at is null)`

// Deliveries that this process has fetched without ever hearing of it, since the reply was lost, or that it has worked in a
// moment that a failover has forgotten: nobody else could know so soon. One that comes late after all is harmless.
const backstopOwnSQL = `
update pawl.river_job j set state = 'discarded', finalized_at = clock_timestamp()
  from (select id from pawl.river_job
         where queue = 'pawl' and state = 'running' and attempted_by[array_length(attempted_by, 1)] = $1 and id <> all ($2::bigint[])
           and attempted_at < clock_timestamp() - interval '1 s'
         order by id for update skip locked) lost
 where j.id = lost.id and not exists (select from pawl.runs r where r.delivery = j.id and r.ended_at is null)`

// backstop mends lanes that break the rule, whatever broke them: a row of River's table deleted by hand, a process
// that died between fetch and start.
func (r *Runner) backstop(ctx context.Context) error {
	mine := []int64{}
	r.arrived.Range(func(id, _ any) bool { mine = append(mine, id.(int64)); return true })
	if _, err := r.pool.Exec(ctx, backstopOwnSQL, r.cfg.Holder, mine); err != nil {
		return err
	}
	rows, err := r.pool.Query(ctx, backstopListSQL)
	if err != nil {
		return err
	}
	locks, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var errs []error
	for _, lock := range locks { // one lane a transaction
		r.log.WarnContext(ctx, "backstop: work without a delivery; delivered again", "lock", lock)
		if err := r.advance(ctx, lock); err != nil {
			errs = append(errs, fmt.Errorf("jobs: advance lane %q: %w", lock, err))
			if !gather.Refused(err) {
				break
			}
		}
	}
	_, err = r.pool.Exec(ctx, backstopRiverSQL)
	return errors.Join(append(errs, err, r.settleAll(ctx), r.pauseMarked(ctx), r.expireAll(ctx), r.loadNeeds(ctx), r.rewaitAll(ctx), r.bringAll(ctx))...)
}
