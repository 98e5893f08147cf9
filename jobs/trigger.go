package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"pawl/jobs/schedule"
)

const (
	periodStateSQL = `
select state, lock from pawl.periods where job = $1 and key = $2 order by revision desc limit 1`

	// A period that is dead, missed, skipped or cancelled is owed again, with all its retries.
	reopenSQL = `
update pawl.periods p set state = 'open', reason = 'operator', ended_at = null, not_before = null, max_attempts = p.attempts + $3::int
 where job = $1 and key = $2 and state not in ('open', 'running', 'complete')
   and revision = (select max(revision) from pawl.periods where job = $1 and key = $2)`

	triggerSQL = `
insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at, max_attempts)
values ($1, $2, $3, $4::timestamptz, $5::timestamptz, clock_timestamp(), $6::int)
on conflict (job, key, revision) do nothing`

	auditSQL = `insert into pawl.audit (actor, action, job, period, lock) values ($1, 'trigger', $2, $3, $4)`
)

// Trigger makes the job's current period owed now, whatever its schedule says, and returns the period's key. The
// current period is the one that a tick at this moment would owe; a @manual job gets a fresh key. A dead, missed or
// skipped period is owed again, with all its retries. actor goes into the audit. It returns [ErrUnknownJob], or
// [ErrComplete] or [ErrRunning] with the key.
func Trigger(ctx context.Context, pool *pgxpool.Pool, job, actor string) (key string, err error) {
	err = pgx.BeginTxFunc(ctx, pool, stepwise(), func(tx pgx.Tx) error {
		key, err = trigger(ctx, tx, job, actor)
		return err
	})
	return key, err
}

func trigger(ctx context.Context, tx pgx.Tx, job, actor string) (string, error) {
	rows, err := tx.Query(ctx, storedSQL, job)
	if err != nil {
		return "", err
	}
	p, err := pgx.CollectExactlyOneRow(rows, scanPlanned)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("%w %q: no schedule of that name is stored; list them with: pawl job ls", ErrUnknownJob, job)
	}
	if err != nil {
		return "", err
	}
	if p.retired() {
		return "", fmt.Errorf("%w %q: it is retired", ErrUnknownJob, job)
	}
	s, err := p.parse()
	if err != nil {
		return "", err
	}
	period := current(s, p.now)
	// Locks: schedule, then lane, then period. A period keeps the lock with which it was planned.
	lock := p.Lock
	var state, planned string
	switch err := tx.QueryRow(ctx, periodStateSQL, job, period.Key).Scan(&state, &planned); {
	case err == nil:
		lock = planned
	case !errors.Is(err, pgx.ErrNoRows):
		return period.Key, err
	}
	switch state {
	case stateComplete:
		return period.Key, fmt.Errorf("%w: %s %s", ErrComplete, job, period.Key)
	case "running":
		return period.Key, fmt.Errorf("%w: %s %s", ErrRunning, job, period.Key)
	}
	err = tx.SendBatch(ctx, laneBatch(lock, func(b *batch) {
		b.Queue(triggerSQL, job, period.Key, lock, period.Start, period.End, p.runs)
		b.Queue(reopenSQL, job, period.Key, p.runs)
		b.Queue(auditSQL, actor, job, period.Key, lock)
	})).Close()
	return period.Key, err
}

// current is the period that a tick now would owe.
func current(s schedule.Schedule, now time.Time) schedule.Period {
	if s.Manual() {
		return schedule.Period{Key: ulid.Make().String(), Start: now, End: now}
	}
	return s.Period(now)
}
