package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// What operators do. Each is one transaction that takes the schedule first, so that no planner and no other operator changes
// what the job owes meanwhile, and ends with a row of the audit.

var (
	// ErrPaused is returned when a job is paused that is paused already.
	ErrPaused = errors.New("jobs: job is paused already")
	// ErrNotPaused is returned when a job is resumed that isn't paused.
	ErrNotPaused = errors.New("jobs: job is not paused")
	// ErrUnknownPeriod is returned for a period that has no row: nothing is known of it.
	ErrUnknownPeriod = errors.New("jobs: unknown period")
	// ErrOwed is returned when a period is asked for that is owed already.
	ErrOwed = errors.New("jobs: period is owed already")
	// ErrPeriodState is what every [*PeriodStateError] is.
	ErrPeriodState = errors.New("jobs: not possible in the period's state")
	// ErrNoReason is returned where a reason is required and none was given.
	ErrNoReason = errors.New("jobs: reason is empty: say why, for the audit")
	// ErrChanged is returned when what a person saw before the act, see [Seen], is no longer so.
	ErrChanged = errors.New("jobs: it has changed meanwhile")
	// ErrTooMany is returned when an act would owe more periods at once than is sane.
	ErrTooMany = errors.New("jobs: too many periods at once")
)

const stateRunning = "running"

// By says who acts, why, and on what they saw.
type By struct {
	Actor  string
	Reason string // for the audit; empty where nobody asked for one
	Seen   Seen
}

// Seen is what a person saw before they decided to act. Nothing is done if it is no longer so, see [ErrChanged]; what is zero
// isn't compared.
type Seen struct {
	Key      string    // of the period that a tick now would owe
	Revision int       // of the period
	State    string    // of the period
	Absent   bool      // nothing was known of the period
	Token    int64     // of the run that has the period, or had it last
	PausedAt time.Time // when the job was paused
	Owed     int       // how many periods a backfill owes
}

func (s Seen) period(job string, now latest) error {
	if !now.exists && (s.Revision != 0 || s.State != "" || s.Token != 0) {
		return fmt.Errorf("%w: nothing is known of that period of %s now", ErrChanged, job)
	}
	if s.Absent && now.exists || s.Revision != 0 && s.Revision != now.revision || s.State != "" && s.State != now.state || s.Token != 0 && s.Token != now.token {
		return fmt.Errorf("%w: %s %s is %s now, as revision %d with token %d", ErrChanged, job, now.key, now.state, now.revision, now.token)
	}
	return nil
}

// operate runs f in one transaction with the job's schedule row locked.
func operate(ctx context.Context, pool *pgxpool.Pool, job string, f func(ctx context.Context, tx pgx.Tx, p *planned) error) error {
	return pgx.BeginTxFunc(ctx, pool, stepwise(), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, storedSQL, job)
		if err != nil {
			return err
		}
		p, err := pgx.CollectExactlyOneRow(rows, scanPlanned)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("%w %q: no schedule of that name is stored; list them with: pawl job ls", ErrUnknownJob, job)
		}
		if err != nil {
			return err
		}
		if p.retired() {
			return fmt.Errorf("%w %q: it is retired", ErrUnknownJob, job)
		}
		if p.schedule, err = p.parse(); err != nil {
			return err
		}
		return f(ctx, tx, p)
	})
}

const auditSQL = `insert into pawl.audit (actor, action, job, period, lock, reason, detail)
values ($1, $2, $3, nullif($4, ''), nullif($5, ''), nullif($6, ''), nullif($7, '')::jsonb)`

// planUp plans a schedule's ticks up to now, or to the end of its pause.
func planUp(ctx context.Context, tx pgx.Tx, p *planned) error {
	for more := true; more; more = p.watermark.Before(p.until()) {
		if err := (*planCache)(nil).fill(p); err != nil {
			return err
		}
		if _, err := writePlan(ctx, tx, []*planned{p}); err != nil {
			return err
		}
	}
	return nil
}

// latest is the last revision of a period, as it stands.
type latest struct {
	key, lock, state, waits string
	revision, ticks         int
	keyRev, refused         int
	sendsAs                 string // the name in the keys of what it sends
	start, end, scheduled   time.Time
	token                   int64
	run                     uuid.UUID // that has it or had it last; zero: none
	params                  json.RawMessage
	exists                  bool
	parent                  string // of a shard: the key of its period
	fanned                  bool   // into shards
	origin                  string
}

const latestSQL = `
select distinct on (key) key, lock, state, coalesce(waits, ''), revision, ticks, start_at, end_at, scheduled_at, coalesce(token, 0), key_revision, coalesce(sends_as, job), refused, coalesce(params::text, ''), coalesce(run::text, ''), coalesce(parent, ''), shards is not null, origin
  from pawl.periods where job = $1 and key = any ($2::text[]) order by key, revision desc`

// What was the job's under a former name, and isn't renamed yet.
const bringKeysSQL = `select pawl.bring(f.former, f.job, $2::text[], null) from pawl.renames f where f.job = $1 and f.done_at is null`

func latestOf(ctx context.Context, tx pgx.Tx, job string, keys ...string) (map[string]latest, error) {
	if _, err := tx.Exec(ctx, bringKeysSQL, job, keys); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, latestSQL, job, keys)
	if err != nil {
		return nil, err
	}
	found := map[string]latest{}
	x, params, run := latest{exists: true}, "", ""
	_, err = pgx.ForEachRow(rows, []any{&x.key, &x.lock, &x.state, &x.waits, &x.revision, &x.ticks, &x.start, &x.end, &x.scheduled, &x.token, &x.keyRev, &x.sendsAs, &x.refused, &params, &run, &x.parent, &x.fanned, &x.origin},
		func() (err error) {
			x.params, x.run = json.RawMessage(params), uuid.UUID{}
			if run != "" {
				x.run, err = uuid.Parse(run)
			}
			found[x.key] = x
			return err
		})
	return found, err
}

// periodOf is the last revision of a period that must exist.
func periodOf(ctx context.Context, tx pgx.Tx, job, key string) (latest, error) {
	found, err := latestOf(ctx, tx, job, key)
	if err == nil && !found[key].exists {
		err = fmt.Errorf("%w %s %s: list them with: pawl job ls", ErrUnknownPeriod, job, key)
	}
	if err == nil && found[key].parent != "" {
		err = fmt.Errorf("%w: %s is a shard of %s %s, give that period: its shards follow", ErrUnknownPeriod, key, job, found[key].parent)
	}
	return found[key], err
}

// reopenSQL makes ended periods owed again, with all their retries.
const reopenSQL = `
update pawl.periods p set state = 'open', reason = 'operator', ended_at = null, not_before = null, start_by = null, late_at = null, blocked_by = null,
       max_attempts = p.attempts + $4::int, origin = coalesce(nullif($5, ''), p.origin), priority = $6::int,
       waits = pawl.waits_for(p.job, p.key, p.scheduled_at, coalesce(nullif($5, ''), p.origin))
  from unnest($2::text[], $3::int[]) q (key, revision)
 where p.job = $1 and p.key = q.key and p.revision = q.revision and p.state not in ('open', 'running', 'complete')`

// rewaitSQL judges anew what a job's periods wait for, those up to $3. $2 are the lanes that the transaction has entered.
const rewaitSQL = `
update pawl.periods p set waits = pawl.waits_for(p.job, p.key, p.scheduled_at, p.origin), blocked_by = null
 where p.job = $1 and p.waits is not null and p.ended_at is null and p.state in ('open', 'running') and p.lock = any ($2::text[])
   and p.scheduled_at <= coalesce($3::timestamptz, 'infinity')
   and pawl.waits_for(p.job, p.key, p.scheduled_at, p.origin) is distinct from p.waits`

const (
	waitingLocksSQL = `
select distinct lock from pawl.periods where job = $1 and waits is not null and ended_at is null`

	unfinishedLocksSQL = `
select distinct lock from pawl.periods where job = $1 and waits is null and ended_at is null`
)

// enterAll enters the lanes of all periods of the job that run or wait, and those of extra, at once.
func enterAll(ctx context.Context, tx pgx.Tx, job string, extra ...string) ([]string, error) {
	locks := slices.Clone(extra)
	for _, sql := range []string{waitingLocksSQL, unfinishedLocksSQL} {
		rows, err := tx.Query(ctx, sql, job)
		if err != nil {
			return nil, err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, err
		}
		locks = append(locks, found...)
	}
	slices.Sort(locks)
	locks = slices.Compact(locks)
	_, err := tx.Exec(ctx, laneSQL, locks)
	return locks, err
}

// queueAudit queues the row of the audit. detail is JSON, or empty.
func queueAudit(b *batch, actor, action, job, period, lock, reason, detail string) {
	b.Queue(auditSQL, actor, action, job, period, lock, reason, detail)
}
