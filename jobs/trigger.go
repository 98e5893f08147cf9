package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"pawl/jobs/schedule"
)

// What is owed already but waits for its time is owed now.
const hurrySQL = `
update pawl.periods set not_before = null, priority = 0 where job = $1 and key = $2 and revision = $3 and state = 'open'`

// Trigger makes the job's current period owed now, whatever its schedule says, and returns the period's key. The
// current period is the one that a tick at this moment would owe; a @manual job gets a fresh key. A dead, missed or
// skipped period is owed again, with all its retries. actor goes into the audit. It returns [ErrUnknownJob], or
// [ErrComplete] or [ErrRunning] with the key.
func Trigger(ctx context.Context, pool *pgxpool.Pool, job, actor string) (key string, err error) {
	return TriggerAs(ctx, pool, job, By{Actor: actor})
}

// TriggerAs is [Trigger] with a reason and what its author saw: the key, and the state of its period if there was one.
func TriggerAs(ctx context.Context, pool *pgxpool.Pool, job string, by By) (key string, err error) {
	err = operate(ctx, pool, job, func(ctx context.Context, tx pgx.Tx, p *planned) error {
		period := current(p.schedule, p.now)
		if by.Seen.Key != "" && by.Seen.Key != period.Key {
			return fmt.Errorf("%w: the current period of %s is %s now", ErrChanged, job, period.Key)
		}
		key = period.Key
		return p.trigger(ctx, tx, period, by)
	})
	return key, err
}

func (p *planned) trigger(ctx context.Context, tx pgx.Tx, period schedule.Period, by By) error {
	found, err := latestOf(ctx, tx, p.Job, period.Key)
	if err != nil {
		return err
	}
	last := found[period.Key]
	switch last.state {
	case stateComplete:
		return fmt.Errorf("%w: %s %s", ErrComplete, p.Job, period.Key)
	case stateRunning:
		return fmt.Errorf("%w: %s %s", ErrRunning, p.Job, period.Key)
	}
	if last.exists {
		if err := by.Seen.period(p.Job, last); err != nil {
			return err
		}
	}
	x := p.row(schedule.Tick{At: p.now, To: p.now, Count: 1, Period: period})
	if last.exists {
		x.Lock = last.lock // a period keeps the lock with which it was planned
	}
	locks, err := enterAll(ctx, tx, p.Job, x.Lock)
	if err != nil {
		return err
	}
	x.Origin, x.Revision, x.NotBefore, x.StartBy, x.LateAt, x.DueAt = originTrigger, last.revision+1, nil, nil, nil, nil
	var b batch
	switch {
	case !last.exists || last.ticks > 1:
		queueOwe(&b, []periodRow{x}, &[]owed{})
	case last.state == stateOpen:
		b.Queue(hurrySQL, p.Job, period.Key, last.revision)
	default:
		b.Queue(reopenSQL, p.Job, []string{period.Key}, []int{last.revision}, p.runs, originTrigger, 0)
	}
	b.Queue(rewaitSQL, p.Job, locks, nil)
	queueAudit(&b, by.Actor, "trigger", p.Job, period.Key, x.Lock, by.Reason, "")
	b.Queue(leaveSQL, locks)
	return tx.SendBatch(ctx, &b).Close()
}

// current is the period that a tick now would owe.
func current(s schedule.Schedule, now time.Time) schedule.Period {
	if s.Manual() {
		return schedule.Period{Key: ulid.Make().String(), Start: now, End: now}
	}
	return s.Period(now)
}
