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

// TriggerConfig says who triggers a job, and with what.
type TriggerConfig struct {
	Actor  string            // goes into the audit
	Reason string            // for the audit; empty where nobody asked for one
	Seen   Seen              // the key, and the state of its period if there was one; of a @manual job a fresh key, so that one form runs it once
	Params map[string]string // by name, as text; what isn't given is as it was given before, or the default
}

// Trigger makes the job's current period owed now, whatever its schedule says, and returns the period's key. The
// current period is the one that a tick at this moment would owe; a @manual job gets a fresh key. A dead, missed or
// skipped period is owed again, with all its retries. It returns [ErrUnknownJob], a [*ParamError], or
// with the key a [*PeriodStateError] that is an [ErrComplete] or [ErrRunning].
func Trigger(ctx context.Context, pool *pgxpool.Pool, job string, c TriggerConfig) (key string, err error) {
	err = operate(ctx, pool, job, func(ctx context.Context, tx pgx.Tx, p *planned) error {
		if err := p.refuseOutbox(); err != nil {
			return err
		}
		period := current(p.schedule, p.now)
		if c.Seen.Key != "" && p.schedule.Manual() {
			own, err := p.schedule.ParseKey(c.Seen.Key)
			if err != nil {
				return err
			}
			period.Key, c.Seen.Absent = own.Key, true
		}
		if c.Seen.Key != "" && c.Seen.Key != period.Key {
			return fmt.Errorf("%w: the current period of %s is %s now", ErrChanged, job, period.Key)
		}
		key = period.Key
		return p.trigger(ctx, tx, period, c)
	})
	return key, err
}

func (p *planned) trigger(ctx context.Context, tx pgx.Tx, period schedule.Period, c TriggerConfig) error {
	last, err := p.triggered(ctx, tx, period.Key)
	if err != nil {
		return err
	}
	given, err := p.given(last.params, c.Params)
	if err != nil {
		return err
	}
	x := p.row(schedule.Tick{At: p.now, To: p.now, Count: 1, Period: period})
	if last.exists {
		x.Lock = last.lock // a period keeps the lock with which it was planned
	}
	locks, err := enterAll(ctx, tx, p.Job, x.Lock)
	if err != nil {
		return err
	}
	if last, err = p.triggered(ctx, tx, period.Key); err != nil { // it may have begun: now nobody can start it
		return err
	}
	if err := c.Seen.period(p.Job, last); err != nil {
		return err
	}
	x.Params = given
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
	queueParams(&b, p.Job, []string{period.Key}, []int{last.revision}, given)
	b.Queue(rewaitSQL, p.Job, locks, nil)
	queueAudit(&b, c.Actor, "trigger", p.Job, period.Key, x.Lock, c.Reason, paramDetail(c.Params))
	b.Queue(leaveSQL, locks)
	return tx.SendBatch(ctx, &b).Close()
}

// triggered is the last revision of a period, which may not exist, but may be triggered.
func (p *planned) triggered(ctx context.Context, tx pgx.Tx, key string) (latest, error) {
	found, err := latestOf(ctx, tx, p.Job, key)
	last := found[key]
	if err == nil && (last.state == stateComplete || last.state == stateRunning) {
		err = last.refuse(actTrigger, p.Job)
	}
	return last, err
}

// current is the period that a tick now would owe.
func current(s schedule.Schedule, now time.Time) schedule.Period {
	if s.Manual() {
		return schedule.Period{Key: ulid.Make().String(), Start: now, End: now}
	}
	return s.Period(now)
}
