package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/jobs/schedule"
)

// Why is the life of a period in sentences, oldest first: how it came to be owed, what it waited for, its runs, what people
// did, and what it is now. It is told from rows alone.
type Why struct {
	Job       string   `json:"job"`
	Key       string   `json:"period"`
	State     string   `json:"state"` // of the last revision; "": it has no row
	Sentences []string `json:"sentences"`

	payloads []int // which sentences tell what it was given or what it said
}

// Public are the sentences without those that tell what a run was given or what it said.
func (w Why) Public() []string {
	all := make([]string, 0, len(w.Sentences))
	for i, s := range w.Sentences {
		if !slices.Contains(w.payloads, i) {
			all = append(all, s)
		}
	}
	return all
}

// whyPeriod is a revision of a period.
type whyPeriod struct {
	Key, Lock, State, Reason, Waits, BlockedBy, Origin string
	Params                                             string
	Revision, Ticks, Attempts, MaxAttempts, Priority   int
	ScheduledAt                                        time.Time
	LastAt, NotBefore, StartBy, DueAt, EndedAt         *time.Time
}

// whyRun is one of its runs.
type whyRun struct {
	Revision, Attempt    int
	State, Holder, Error string
	Token                int64
	StartedAt            time.Time
	EndedAt              *time.Time
	Done                 *int64
	Said                 *int64 // bytes of output
	Partial              bool   // the rest of it is lost
	LastWords            []byte
}

// whyAway is how often a revision found no permit.
type whyAway struct {
	Revision    int
	Count       int64
	First, Last time.Time
	Error       string // of one of them
}

// whyAct is what a person did to it or to its job.
type whyAct struct {
	At                    time.Time
	Actor, Action, Reason string
	Period                string
}

const (
	// Its own rows, or the stretch of ticks that it lies in.
	whyPeriodsSQL = `
select key, lock, state, coalesce(reason, '') as reason, coalesce(waits, '') as waits, coalesce(blocked_by, '') as blocked_by, origin,
       revision, ticks, attempts::int, max_attempts::int, priority::int, scheduled_at, last_at, not_before, start_by, due_at, ended_at, coalesce(params::text, '') as params
  from pawl.periods
 where job = @job and (key = @key or ticks > 1 and scheduled_at <= @at and last_at >= @at)
 order by key = @key, revision`

	whyRunsSQL = `
select revision, attempt::int, state, coalesce(holder, '') as holder, coalesce(error, '') as error, token, started_at, ended_at, done,
       o.bytes as said, coalesce(o.partial, false) as partial,
       case when o.partial then substr(w.words, greatest(length(w.words) - 199, 1)) end as last_words
  from pawl.runs r left join pawl.outputs o on o.run = r.id
 cross join lateral (select case when length(o.tail) > 0 then o.tail else o.head end as words) w
 where r.job = @job and r.key = @key and not (r.state = 'drained' and starts_with(coalesce(r.error, ''), @waits)) order by started_at, attempt limit 1000`

	// Those that found no permit are many, and nothing happened in them.
	whyAwaySQL = `
select revision, count(*) as count, min(started_at) as first, max(started_at) as last, max(error) as error from pawl.runs
 where job = @job and key = @key and state = 'drained' and starts_with(error, @waits) group by revision`

	whyActsSQL = `
select at, actor, action, coalesce(reason, '') as reason, coalesce(period, '') as period from pawl.audit
 where job = any (array(select @job::text union all select former from pawl.renames where job = @job))
   and (period = @key or period is null and action in ('pause', 'resume', 'backfill', 'retire', 'rename') and at >= @since)
 order by at, id limit 1000`

	whyNeedsSQL = `
select n.job || ' ' || @key || ' ' || coalesce('is ' || q.state, 'has no row') as need
  from pawl.schedules s cross join lateral jsonb_array_elements_text(s.definition -> 'needs') n (job)
  left join lateral (select state from pawl.periods where job = n.job and key = @key order by revision desc limit 1) q on true
 where s.job = @job and q.state is distinct from 'complete' order by n.job`

	// What runs or comes first under its lock.
	whyAheadSQL = `
select p.job || ' ' || p.key || ' ' || case p.state when 'running' then 'runs' else 'comes first' end as ahead from pawl.periods p
 where p.lock = @lock and p.ended_at is null and p.waits is null and p.state in ('open', 'running') and (p.job, p.key) <> (@job, @key)
   and (p.state = 'running' or (p.priority, p.scheduled_at, p.job, p.key) < (@priority, @at, @job, @key))
 order by p.state = 'open', p.priority, p.scheduled_at, p.job, p.key limit 1`

	whyHolderSQL = `
select coalesce(holder, 'somebody') || ' until ' || to_char(expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as holder
  from pawl.locks where name = @lock and grant_id is not null and expires_at > clock_timestamp()
   and not exists (select from pawl.runs where lock = @lock and ended_at is null)`
)

// Why tells the life of a period. It returns [ErrUnknownJob], or a [*schedule.FieldError] for a key that isn't one of the
// job's kind. A period without a row is told too: why there is none.
func (h *History) Why(ctx context.Context, job, key string) (w Why, err error) {
	w = Why{Job: job, Key: key, Sentences: []string{}}
	err = h.read(ctx, "why", func(ctx context.Context, tx pgx.Tx) error {
		t := &teller{ctx: ctx, tx: tx, job: job, key: key}
		err := t.tell()
		w.Sentences, w.payloads, w.State = append(w.Sentences, t.said...), t.payloads, t.state
		return err
	})
	var wrong *schedule.FieldError
	if errors.Is(err, ErrUnknownJob) || errors.As(err, &wrong) {
		err = errors.Unwrap(err) // the question was answered
	}
	return w, err
}

// stored is a job as it is stored, with the database's clock.
func (t *teller) stored() (*planned, error) {
	rows, err := t.tx.Query(t.ctx, `select `+plannedColumns+` from pawl.schedules where job = $1`, t.job)
	if err != nil {
		return nil, err
	}
	p, err := pgx.CollectExactlyOneRow(rows, scanPlanned)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("%w %q: no schedule of that name is stored; list them with: pawl job ls", ErrUnknownJob, t.job)
	}
	return p, err
}

// ask is one question of the teller's.
func ask[T any](t *teller, sql string, more pgx.NamedArgs) ([]T, error) {
	args := pgx.NamedArgs{"job": t.job, "key": t.key}
	for name, v := range more {
		args[name] = v
	}
	rows, err := t.tx.Query(t.ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByNameLax[T])
}

// texts is a question whose answer is one text a row.
func (t *teller) texts(sql string, more pgx.NamedArgs) ([]string, error) {
	args := pgx.NamedArgs{"job": t.job, "key": t.key}
	for name, v := range more {
		args[name] = v
	}
	rows, err := t.tx.Query(t.ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// instant is when a key of a single tick or hour is; zero for others.
func instant(s schedule.Schedule, key string) time.Time {
	p, err := s.ParseKey(key)
	if err != nil || !s.Kind().Short() {
		return time.Time{}
	}
	if at, ok := s.Due(p); ok {
		return at
	}
	return p.Start
}
