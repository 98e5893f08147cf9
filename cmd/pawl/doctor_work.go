package main

import (
	"context"
	"time"
)

const waitingSQL = `
select p.job, min(extract(epoch from clock_timestamp() - greatest(p.scheduled_at, d.scheduled_at)))::float8, count(*) over ()
  from pawl.lanes l join pawl.river_job d on d.id = l.delivery
  join lateral (select job, scheduled_at from pawl.periods where lock = l.lock and ended_at is null and waits is null and state = 'open'
                 order by priority, scheduled_at, job, key, revision limit 1) p on true
 where d.state = 'available' and d.scheduled_at < clock_timestamp() - interval '5 minutes'
   and p.scheduled_at < clock_timestamp() - interval '5 minutes'
 group by p.job order by 2 desc limit 1`

// checkWaiting finds jobs whose deliveries nobody takes, and names the one that has waited longest.
func checkWaiting(ctx context.Context, db *database) (finding, error) {
	rows, err := db.pool.Query(ctx, waitingSQL)
	if err != nil {
		return finding{}, err
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return finding{}, err
		}
		return okay("every period that may run is taken within 5 minutes")
	}
	var job string
	var age float64
	var n int64
	if err := rows.Scan(&job, &age, &n); err != nil {
		return finding{}, err
	}
	detail := "a period of " + job + " has waited for " + humanise(time.Duration(age*float64(time.Second))) + ", and no replica takes it"
	if n > 1 {
		detail += "; " + plural(n-1, "other job waits", "other jobs wait") + " too"
	}
	return unless(true, warn, detail, "start a replica that has "+job+", or see whether all its slots are busy (docs/runbook.md, PawlQueueOld); "+
		"if the job is gone for good: pawl job retire "+job+" --reason TEXT")
}
