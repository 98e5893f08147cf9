package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Counts is how much there is of each thing right now. Counts of things that may be many stop at 10,001, so that
// looking stays cheap; ages are seconds.
type Counts struct {
	Now          time.Time `json:"-"`             // the database's clock
	Held         int       `json:"held"`          // live leases
	Stale        int       `json:"stale"`         // leases past their end that nobody has taken
	Open         int       `json:"open"`          // periods owed and waiting
	Running      int       `json:"running"`       // periods with a run
	OnHold       int       `json:"on_hold"`       // periods that wait for a person
	Dead         int       `json:"dead"`          // periods of the last 7 days that ran out of attempts
	Missed       int       `json:"missed"`        // periods of the last 7 days that nobody ran
	Refusals     int64     `json:"refusals"`      // writes ever turned away; what log mode let pass is not among them
	QueueDepth   int       `json:"queue_depth"`   // deliveries that are due and that no worker has taken
	QueueOldest  float64   `json:"queue_oldest"`  // how long the first of them has been due
	WatermarkAge float64   `json:"watermark_age"` // how long the first unplanned tick has been due; zero: all planned
}

// Counts answers all its figures from one moment.
func (h *History) Counts(ctx context.Context) (Counts, error) {
	// Refusals are the highest number: a count of rows would fall when history is pruned, and a counter must not fall.
	const sql = `
with n as materialized (select clock_timestamp() as now), lease as (
  select count(*) filter (where expires_at > n.now) as held, count(*) filter (where expires_at <= n.now) as stale
    from pawl.locks, n where grant_id is not null
), owed as (
  select count(*) filter (where state = 'open') as open, count(*) filter (where state = 'running') as running,
         count(*) filter (where state = 'held') as on_hold
    from (select state from pawl.periods where ` + unfinished + notShards + `
           union all select state from pawl.periods where ` + waiting + ` and ended_at is null limit 10001) p
), bad as (
  select count(*) filter (where state = 'dead') as dead, count(*) filter (where state = 'missed') as missed
    from (select p.state from n, pawl.schedules s cross join lateral (select state from pawl.periods
           where ` + endedBadly + notShards + ` and job = s.job and scheduled_at > n.now - interval '7 days') p
           where p.state in ('dead', 'missed') limit 10001) p
), queue as (
  select count(*) as depth, coalesce(max(extract(epoch from n.now - scheduled_at)), 0)::float8 as oldest
    from pawl.river_job, n where state = 'available' and queue = 'pawl' and scheduled_at <= n.now
), planner as (
  select coalesce(greatest(max(extract(epoch from n.now - next_at)), 0), 0)::float8 as age
    from pawl.schedules, n where retired_at is null and next_at <= n.now
)
select n.now, lease.held, lease.stale, owed.open, owed.running, owed.on_hold, bad.dead, bad.missed,
       coalesce((select max(nth) from pawl.refusals), 0) as refusals,
       queue.depth as queue_depth, queue.oldest as queue_oldest, planner.age as watermark_age
  from n, lease, owed, bad, queue, planner`
	var c Counts
	err := h.read(ctx, "counts", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql)
		if err != nil {
			return err
		}
		c, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Counts])
		return err
	})
	utc(&c.Now)
	return c, err
}
