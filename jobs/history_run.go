package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawl/lockrepo"
)

// ErrUnknownRun is returned for a run that no row tells of: it never was, or its history isn't kept any more.
var ErrUnknownRun = errors.New("jobs: unknown run")

const (
	mostShown    = 4096 // bytes of a checkpoint, of parameters, and of each end of an output
	mostAttempts = 200
)

// RunDetail is one run with its period, its lease and what happened to it.
type RunDetail struct {
	RunRecord
	Period          PeriodRecord     `json:"period"` // only job, key and revision when its row isn't kept any more
	MaxAttempts     int              `json:"max_attempts"`
	Params          json.RawMessage  `json:"params"` // of the period; null: none, or more than 4 KB
	ParamsCut       bool             `json:"params_cut"`
	Lease           RunLease         `json:"lease"`
	Beats           int              `json:"-"`          // the lease's
	LongestGap      lockrepo.Seconds `json:"-"`          // the lease's: between two heartbeats
	Attempts        []RunRecord      `json:"attempts"`   // at the period and revision, this one too, oldest first; the last 200
	Checkpoint      string           `json:"checkpoint"` // of the period, JSON text, at most 4 KB of it; "": none
	CheckpointCut   bool             `json:"checkpoint_cut"`
	CheckpointAt    *time.Time       `json:"checkpoint_at"`
	CheckpointToken int64            `json:"checkpoint_token"` // of the run that wrote it
	Output          *OutputRecord    `json:"-"`                // at most 4 KB of each end; nil: none is kept
	Events          []RunEvent       `json:"events"`           // the newest 200, newest first; heartbeats are one
	EventsMore      bool             `json:"events_more"`      // there were others before
}

// RunLease is the lease that a run has or had. Where the history isn't kept any more, all but lock and token is empty.
type RunLease struct {
	Lock            string           `json:"lock"`
	Token           int64            `json:"token"`
	Holder          string           `json:"holder"`
	AcquiredAt      *time.Time       `json:"acquired_at"`
	RenewedAt       *time.Time       `json:"renewed_at"` // of a live one
	ExpiresAt       *time.Time       `json:"expires_at"` // when it ends, or would have ended
	EndedAt         *time.Time       `json:"ended_at"`   // nil: live
	How             string           `json:"how"`        // held, expired (nobody took it), released, taken_over, reacquired, forced
	Successor       *int64           `json:"successor"`  // the next token; nil: none is known
	SuccessorHolder string           `json:"successor_holder"`
	SuccessorAt     *time.Time       `json:"successor_at"`
	Beats           int              `json:"beats"`
	LongestGap      lockrepo.Seconds `json:"longest_gap"`
}

const (
	runSQL = `select ` + runColumns + ` from pawl.runs where id = @id::text::uuid`

	runPeriodSQL = `
select ` + periodColumns + `
  from pawl.periods where job = @job and key = @key and revision = @revision::int`

	// Parameters are read from the row as it is: not every schema has them.
	runParamsSQL = `
select max_attempts::int, coalesce(nullif(to_jsonb(p) -> 'params', 'null')::text, '')
  from pawl.periods p where job = @job and key = @key and revision = @revision::int`

	attemptsSQL = `
select ` + runColumns + `
  from (select * from pawl.runs where job = @job and key = @key and revision = @revision::int order by attempt desc, started_at desc limit @attempts) r
 order by attempt, started_at`

	// A lock's row tells of the live lease alone, and of one that has expired until somebody takes it or it is swept.
	leaseSQL = `
select l.*, coalesce(h.holder, n.holder, '') as successor_holder, coalesce(h.acquired_at, n.acquired_at) as successor_at
  from (
    select lock, token, coalesce(holder, '') as holder, acquired_at, null::timestamptz as renewed_at, expires_at, ended_at, how, successor, beats, longest_gap
      from pawl.tenures where lock = @lock and token = @token
    union all
    select name, token, coalesce(holder, ''), acquired_at, renewed_at, expires_at, case when expires_at <= clock_timestamp() then expires_at end,
           case when expires_at <= clock_timestamp() then 'expired' else 'held' end, null, beats, longest_gap
      from pawl.locks where name = @lock and token = @token and grant_id is not null) l
  left join pawl.tenures h on h.lock = @lock and h.token = l.successor
  left join pawl.locks n on n.name = @lock and n.token = l.successor
 limit 1`

	runCheckpointSQL = `
select left(value::text, @shown), octet_length(value::text) > @shown, at, token
  from pawl.checkpoints where job = @job and key = @key and revision = @revision::int`

	// Where no tail was kept apart, the end of the head is one.
	runOutputSQL = `
select substring(head for @shown), case when tail <> '' then substring(tail from greatest(1, length(tail) - @shown + 1))
         else substring(head from greatest(@shown + 1, length(head) - @shown + 1)) end, bytes, at, partial
  from pawl.outputs where run = @id::text::uuid`
)

// Run returns one run with all that is known of it, or [ErrUnknownRun]. It reads as much of a run with many heartbeats,
// refusals or a large output as of another.
func (h *History) Run(ctx context.Context, id uuid.UUID) (d RunDetail, err error) {
	err = h.read(ctx, "run", func(ctx context.Context, tx pgx.Tx) error {
		args := pgx.NamedArgs{"id": id.String(), "shown": mostShown, "attempts": mostAttempts}
		var found bool
		if d.RunRecord, found, err = row(ctx, tx, runSQL, args, pgx.RowToStructByName[RunRecord]); err != nil || !found {
			return errors.Join(err, notFound(found, id))
		}
		args["job"], args["key"], args["revision"], args["lock"], args["token"] = d.Job, d.Key, d.Revision, d.Lock, d.Token
		for _, add := range []func(context.Context, pgx.Tx, pgx.NamedArgs) error{d.readPeriod, d.readLease, d.readSaid, d.readEvents} {
			if err := add(ctx, tx, args); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, ErrUnknownRun) {
		err = errors.Unwrap(err) // the question was answered
	}
	d.utc()
	return d, err
}

func notFound(found bool, id uuid.UUID) error {
	if found {
		return nil
	}
	return fmt.Errorf("%w %s", ErrUnknownRun, id)
}

// row is a question whose answer is one row or none.
func row[T any](ctx context.Context, tx pgx.Tx, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) (v T, found bool, err error) {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return v, false, err
	}
	v, err = pgx.CollectOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return v, false, nil
	}
	return v, err == nil, err
}

// readPeriod reads the period and all attempts at it.
func (d *RunDetail) readPeriod(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) error {
	p, found, err := row(ctx, tx, runPeriodSQL, args, pgx.RowToStructByName[PeriodRecord])
	if err != nil {
		return err
	}
	if d.Period = p; !found {
		d.Period = PeriodRecord{Job: d.Job, Key: d.Key, Revision: d.Revision}
	}
	var params string
	err = tx.QueryRow(ctx, runParamsSQL, args).Scan(&d.MaxAttempts, &params)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if d.ParamsCut = len(params) > mostShown; !d.ParamsCut && params != "" {
		d.Params = json.RawMessage(params)
	}
	rows, err := tx.Query(ctx, attemptsSQL, args)
	if err == nil {
		d.Attempts, err = pgx.CollectRows(rows, pgx.RowToStructByName[RunRecord])
	}
	return err
}

func (d *RunDetail) readLease(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) (err error) {
	var found bool
	d.Lease, found, err = row(ctx, tx, leaseSQL, args, func(r pgx.CollectableRow) (l RunLease, err error) {
		return l, r.Scan(&l.Lock, &l.Token, &l.Holder, &l.AcquiredAt, &l.RenewedAt, &l.ExpiresAt, &l.EndedAt, &l.How, &l.Successor, &l.Beats,
			(*time.Duration)(&l.LongestGap), &l.SuccessorHolder, &l.SuccessorAt)
	})
	if !found {
		d.Lease = RunLease{Lock: d.Lock, Token: d.Token}
	}
	d.Beats, d.LongestGap = d.Lease.Beats, d.Lease.LongestGap
	return err
}

// readSaid reads the checkpoint and the output.
func (d *RunDetail) readSaid(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) error {
	var text *string
	err := tx.QueryRow(ctx, runCheckpointSQL, args).Scan(&text, &d.CheckpointCut, &d.CheckpointAt, &d.CheckpointToken)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if text != nil {
		d.Checkpoint = firstBytes(*text, mostShown)
	}
	o, found, err := row(ctx, tx, runOutputSQL, args, func(r pgx.CollectableRow) (o OutputRecord, err error) {
		return o, r.Scan(&o.Head, &o.Tail, &o.Bytes, &o.At, &o.Partial)
	})
	if found {
		utc(&o.At)
		d.Output = &o
	}
	return err
}

// firstBytes is the beginning of a text, n bytes or what makes whole characters of them.
func firstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for s = s[:n]; !utf8.ValidString(s); {
		s = s[:len(s)-1]
	}
	return strings.Clone(s)
}

func (d *RunDetail) utc() {
	utc(&d.StartedAt, d.EndedAt, d.CheckpointAt, d.Lease.AcquiredAt, d.Lease.RenewedAt, d.Lease.ExpiresAt, d.Lease.EndedAt, d.Lease.SuccessorAt)
	d.Period.utc()
	for i := range d.Attempts {
		utc(&d.Attempts[i].StartedAt, d.Attempts[i].EndedAt)
	}
	for i := range d.Events {
		utc(&d.Events[i].At)
	}
}
