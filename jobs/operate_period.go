package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// RerunConfig says who lets a complete period run again, and why.
type RerunConfig struct {
	Actor         string
	Reason        string            // required
	Params        map[string]string // given to it by name; what isn't given is as it was for the revision before
	RepeatEffects bool              // what was sent to others is sent again, under a new idempotency key
	Seen          Seen              // of the period
}

// Rerun owes a complete period once more, as its next revision, and returns that; the old revision stays as it is. It returns
// [ErrUnknownJob], [ErrUnknownPeriod], [ErrNoReason], a [*ParamError], or a [*PeriodStateError] if the period isn't
// complete. A rerun that was cancelled is followed by another one: the period was complete before it.
func Rerun(ctx context.Context, pool *pgxpool.Pool, job, key string, c RerunConfig) (revision int, err error) {
	if strings.TrimSpace(c.Reason) == "" {
		return 0, ErrNoReason
	}
	err = operate(ctx, pool, job, func(ctx context.Context, tx pgx.Tx, p *planned) error {
		last, err := complete(ctx, tx, job, key)
		if err != nil {
			return err
		}
		if err := c.Seen.period(job, last); err != nil {
			return err
		}
		revision = last.revision + 1
		x := p.again(last, originRerun)
		if x.Params, err = p.given(last.params, c.Params); err != nil {
			return err
		}
		if x.Repeat = c.RepeatEffects; x.Repeat {
			x.KeyRev, x.Refused = revision, 0
		}
		b := laneBatch(last.lock, func(b *batch) {
			queueOwe(b, []periodRow{x}, &[]owed{})
			queueAudit(b, c.Actor, "rerun", job, key, last.lock, c.Reason, detail(map[string]any{"revision": revision, "repeat_effects": c.RepeatEffects, "params": c.Params}))
		})
		return tx.SendBatch(ctx, b).Close()
	})
	return revision, err
}

// complete is the last revision of a period, which must be complete, or have been so before a rerun that was cancelled.
func complete(ctx context.Context, tx pgx.Tx, job, key string) (latest, error) {
	last, err := periodOf(ctx, tx, job, key)
	if err == nil && last.state != stateComplete && (last.state != stateCancelled || last.origin != originRerun) {
		err = last.refuse(actRerun, job)
	}
	return last, err
}

// again is the row of a period's next revision.
func (p *planned) again(last latest, origin string) periodRow {
	return periodRow{
		Job: p.Job, Key: last.key, Revision: last.revision + 1, Lock: last.lock, State: stateOpen, Origin: origin,
		StartAt: last.start, EndAt: last.end, At: last.scheduled, LastAt: last.scheduled, Ticks: 1, Most: p.runs,
		KeyRev: last.keyRev, SendsAs: last.sendsAs, Refused: last.refused,
	}
}

// Retry owes a dead period again, with all its retries. What waited behind it waits on until it is complete, since it comes
// first. It returns [ErrUnknownJob], [ErrUnknownPeriod], or a [*PeriodStateError] if the period isn't dead.
func Retry(ctx context.Context, pool *pgxpool.Pool, job, key, actor string) error {
	return RetryAs(ctx, pool, job, key, By{Actor: actor})
}

// RetryAs is [Retry] with a reason and what its author saw of the period.
func RetryAs(ctx context.Context, pool *pgxpool.Pool, job, key string, by By) error {
	return operate(ctx, pool, job, func(ctx context.Context, tx pgx.Tx, p *planned) error {
		last, err := periodOf(ctx, tx, job, key)
		if err != nil {
			return err
		}
		if last.state != stateDead {
			return last.refuse(actRetry, job)
		}
		if err := by.Seen.period(job, last); err != nil {
			return err
		}
		locks, err := enterAll(ctx, tx, job, last.lock)
		if err != nil {
			return err
		}
		var b batch
		b.Queue(reopenSQL, job, []string{key}, []int{last.revision}, p.runs, "", 0)
		b.Queue(rewaitSQL, job, locks, nil)
		queueAudit(&b, by.Actor, "retry", job, key, last.lock, by.Reason, "")
		b.Queue(leaveSQL, locks)
		return tx.SendBatch(ctx, &b).Close()
	})
}

const (
	stateDead = "dead"
	stateHeld = "held"
)

const (
	// The lock before the lane: a run that ends at this moment takes them in that order.
	lockRowsSQL = `select from pawl.locks where name = any ($1::text[]) order by name for no key update`

	// Those under which a period and its shards may run.
	locksOfSQL = `
select lock from pawl.periods
 where job = $1 and revision = $3 and (key = $2 or parent = $2 and state in ('open', 'running')) order by lock`

	// Under a snapshot a run completes its period without lock row and lane, see Run.Complete.
	periodRowSQL = `select from pawl.periods where job = $1 and key = $2 and revision = $3 for no key update`

	cancelSQL = `
update pawl.periods set state = 'cancelled', reason = 'operator', ended_at = coalesce(ended_at, clock_timestamp()), not_before = null, waits = null
 where job = $1 and (key = $2 or parent = $2) and revision = $3 and state in ('open', 'running', 'held', 'dead')`

	// It never waits for guards. From its commit no new guard and no renewal passes.
	cancelForceSQL = `
with mine as materialized (
  select l.*, p.run from pawl.periods p join pawl.locks l on l.name = p.lock and l.token = p.token and l.grant_id = p.run
   where p.job = $1 and (p.key = $2 or p.parent = $2) and p.revision = $3 and p.state = 'cancelled'
), freed as (
  update pawl.locks l set grant_id = null, holder = null, key = null, request_id = null, expires_at = null, renewed_at = clock_timestamp()
    from mine m where l.name = m.name
)
insert into pawl.tenures (lock, token, grant_id, holder, key, request_id, acquired_at, expires_at, ended_at, how, beats, longest_gap)
select name, token, grant_id, holder, key, request_id, acquired_at, expires_at, clock_timestamp(), 'forced', beats, longest_gap from mine`
)

// Cancel ends a period that is owed, held, running or dead: it doesn't run any more. A run that is under way loses its lease
// at once; what it has not committed by then it can't commit any more, and the next period starts when its run has been
// swept. What waited behind a dead period goes on. It returns [ErrUnknownJob], [ErrUnknownPeriod], [ErrNoReason], or a
// [*PeriodStateError] if the period has ended already.
func Cancel(ctx context.Context, pool *pgxpool.Pool, job, key, actor, reason string) error {
	return CancelAs(ctx, pool, job, key, By{Actor: actor, Reason: reason})
}

// CancelAs is [Cancel] with what its author saw of the period: another run of it isn't ended in its place.
func CancelAs(ctx context.Context, pool *pgxpool.Pool, job, key string, by By) error {
	if strings.TrimSpace(by.Reason) == "" {
		return ErrNoReason
	}
	for { // a lock is born once, so this ends
		if err := cancelOnce(ctx, pool, job, key, by); !errors.Is(err, errBorn) {
			return err
		}
	}
}

// errBorn says that the lock had no row yet when it was to be taken, and has one now. To take it after the lane would
// deadlock with the end of the run, which takes them the other way round.
var errBorn = errors.New("jobs: the lock is born")

func cancelOnce(ctx context.Context, pool *pgxpool.Pool, job, key string, by By) error {
	return operate(ctx, pool, job, func(ctx context.Context, tx pgx.Tx, _ *planned) error {
		last, err := periodOf(ctx, tx, job, key)
		if err != nil {
			return err
		}
		row, err := tx.Exec(ctx, lockRowsSQL, []string{last.lock})
		if err != nil {
			return err
		}
		locks, err := lockAll(ctx, tx, job, last)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, periodRowSQL, job, key, last.revision); err != nil {
			return err
		}
		if last, err = periodOf(ctx, tx, job, key); err != nil { // as it is now that nobody may change it
			return err
		}
		if err := by.Seen.period(job, last); err != nil {
			return err
		}
		var b batch
		b.Queue(cancelSQL, job, key, last.revision)
		switch last.state {
		case stateOpen, stateHeld, stateDead:
		case stateRunning:
			if row.RowsAffected() == 0 {
				return errBorn
			}
			b.Queue(cancelForceSQL, job, key, last.revision)
		default:
			return last.refuse(actCancel, job)
		}
		b.Queue(rewaitSQL, job, locks, nil)
		queueAudit(&b, by.Actor, "cancel", job, key, last.lock, by.Reason, detail(map[string]any{"was": last.state, "token": last.token}))
		b.Queue(leaveSQL, locks)
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return fmt.Errorf("jobs: cancel %s %s: %w", job, key, err)
		}
		return nil
	})
}

// lockAll takes the lock rows of a period and its shards, and enters its job's lanes. Between the two it may be fanned out:
// then there are locks that had to be taken first, and it is done over.
func lockAll(ctx context.Context, tx pgx.Tx, job string, last latest) (lanes []string, err error) {
	for range 3 {
		sub, err := tx.Begin(ctx)
		if err != nil {
			return nil, err
		}
		taken, err := locksOf(ctx, sub, job, last)
		if err == nil {
			_, err = sub.Exec(ctx, lockRowsSQL, taken)
		}
		if err == nil {
			lanes, err = enterAll(ctx, sub, job, last.lock)
		}
		if err != nil {
			return nil, err
		}
		now, err := locksOf(ctx, sub, job, last)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(now, func(l string) bool { return !slices.Contains(taken, l) }) {
			return lanes, sub.Commit(ctx)
		}
		if err := sub.Rollback(ctx); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("jobs: %s %s is fanned out again and again at this moment: try again", job, last.key)
}

func locksOf(ctx context.Context, tx pgx.Tx, job string, last latest) ([]string, error) {
	rows, err := tx.Query(ctx, locksOfSQL, job, last.key, last.revision)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
