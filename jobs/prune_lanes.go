package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"
)

const (
	// Lanes after $1, by name, whose lock has rested for a day: only what is idle for long is locked, and nobody is waited
	// for. A job with Overlap allow leaves a lane for each period.
	idleLanesSQL = `
select n.lock from pawl.lanes n
 where n.lock > $1
   and not exists (select from pawl.locks l where l.name = n.lock and (l.grant_id is not null or l.renewed_at > clock_timestamp() - interval '1 day'))
   and not exists (select from pawl.periods p where p.lock = n.lock and p.ended_at is null and p.waits is null)
 order by n.lock limit $2 for update of n skip locked`

	// Judged by a later statement, whose snapshot is from after the lanes were granted: whoever entered one a moment ago has
	// left by now, and what it has written is seen. Whoever comes now waits, and finds no lane: it makes a new one.
	dropLanesSQL = `
delete from pawl.lanes n
 where n.lock = any ($1::text[])
   and not exists (select from pawl.periods p where p.lock = n.lock and p.ended_at is null and p.waits is null)
   and not exists (select from pawl.runs r where r.lock = n.lock and r.ended_at is null)
   and not exists (select from pawl.locks l where l.name = n.lock and l.grant_id is not null)
   and not exists (select from pawl.river_job j where j.id = n.delivery and j.state in ('available', 'scheduled', 'pending', 'retryable', 'running'))
   and n.lock not in (select w.lock from pawl.periods w where w.waits is not null and w.ended_at is null)`
)

// pruneLanes deletes the lanes that nothing owes, runs or waits under. A lane is only the mutex of its lock's periods: where
// there is none, whoever enters makes it.
func (r *Run) pruneLanes(ctx context.Context) (all int64, err error) {
	for after := ""; ; {
		met := 0
		err := r.Tx(ctx, func(tx pgx.Tx) error {
			locks, n, err := dropLanes(ctx, tx, after, pruneBatch)
			if met = len(locks); met > 0 {
				after = locks[met-1]
			}
			all += n
			return err
		})
		if err != nil || met < pruneBatch {
			return all, err
		}
	}
}

// dropLanes returns the lanes that it has looked at, by name, and how many of them are gone.
func dropLanes(ctx context.Context, tx pgx.Tx, after string, most int) (locks []string, n int64, err error) {
	if _, err := tx.Exec(ctx, `set local enable_seqscan = off`); err != nil {
		return nil, 0, err
	}
	rows, err := tx.Query(ctx, idleLanesSQL, after, most)
	if err != nil {
		return nil, 0, err
	}
	if locks, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(locks) == 0 {
		return nil, 0, err
	}
	tag, err := tx.Exec(ctx, dropLanesSQL, locks)
	return locks, tag.RowsAffected(), err
}
