package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	retireSQL = `update pawl.schedules set retired_at = clock_timestamp(), retired_by = $2, next_at = null where job = $1 and retired_at is null`

	lockedInSQL = `select distinct lock from pawl.periods where job = $1 and ended_at is null order by lock`

	// A run that is under way may finish: only what waits is cancelled.
	cancelOpenSQL = `
update pawl.periods set state = 'cancelled', reason = 'retired', ended_at = clock_timestamp(), not_before = null, waits = null
 where job = $1 and state in ('open', 'held') and lock = any ($2::text[])`

	auditRetireSQL = `insert into pawl.audit (actor, action, job, reason) values ($1, 'retire', $2, $3)`
)

// Retire ends a job: it is planned no more, and what it owes is cancelled with the reason "retired". Its history stays,
// and a run that is under way may finish. A runner that has the job registers it again when it starts. actor and reason
// go into the audit. It returns how many periods were cancelled, or [ErrUnknownJob]; a job that is retired already is
// no error.
func Retire(ctx context.Context, pool *pgxpool.Pool, job, actor, reason string) (cancelled int64, err error) {
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		cancelled, err = retire(ctx, tx, job, actor, actor, reason)
		return err
	})
	return cancelled, err
}

func retire(ctx context.Context, tx pgx.Tx, job, by, actor, reason string) (int64, error) {
	rows, err := tx.Query(ctx, storedSQL, job) // the schedule first: no planner owes more meanwhile
	if err != nil {
		return 0, err
	}
	p, err := pgx.CollectExactlyOneRow(rows, scanPlanned)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("%w %q: no schedule of that name is stored; list them with: pawl job ls", ErrUnknownJob, job)
	}
	if err != nil {
		return 0, err
	}
	if _, err := p.parse(); err == nil && !p.retired() { // the last ticks have rows too
		if err := planUp(ctx, tx, p); err != nil {
			return 0, err
		}
	}
	if _, err := tx.Exec(ctx, retireSQL, job, by); err != nil {
		return 0, err
	}
	rows, err = tx.Query(ctx, lockedInSQL, job)
	if err != nil {
		return 0, err
	}
	locks, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, err
	}
	var cancelled int64
	var b batch
	b.Queue(laneSQL, locks)
	b.Queue(cancelOpenSQL, job, locks)
	b.Queue(leaveSQL, locks)
	b.Queue(auditRetireSQL, actor, job, reason)
	b.QueuedQueries[1].Exec(func(tag pgconn.CommandTag) error { cancelled = tag.RowsAffected(); return nil })
	return cancelled, tx.SendBatch(ctx, &b).Close()
}
