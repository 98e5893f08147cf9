package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Output is what a run has said: the beginning and the end of it, as they were, bytes and not always text. What is
// missing lies between them.
type Output struct {
	Head  []byte
	Tail  []byte
	Bytes int64 // in all
}

// Cut reports whether something is missing between head and tail.
func (o Output) Cut() bool { return o.Bytes > int64(len(o.Head)+len(o.Tail)) }

// OutputRecord is the output of one run.
type OutputRecord struct {
	Output
	At      time.Time // when it was written, UTC by the database's clock
	Partial bool      // the run goes on, or its process died before it could tell the rest
}

const (
	keepSQL = `
insert into pawl.outputs as o (run, job, head, tail, bytes)
select r.id, r.job, $2::bytea, $3::bytea, $4::bigint from pawl.runs r where r.id = $1::text::uuid
on conflict (run) do update set head = excluded.head, tail = excluded.tail, bytes = excluded.bytes, at = clock_timestamp(), partial = false`

	// Under the token, and never in place of what was kept at the end.
	soFarSQL = `
insert into pawl.outputs as o (run, job, head, tail, bytes, partial)
select r.id, r.job, $4::bytea, $5::bytea, $6::bigint, true from pawl.runs r join pawl.locks l on l.name = r.lock
 where r.id = $1::text::uuid and r.ended_at is null and l.name = $2 and l.token = $3 and l.grant_id = r.id and l.expires_at > clock_timestamp()
on conflict (run) do update set head = excluded.head, tail = excluded.tail, bytes = excluded.bytes, at = clock_timestamp()
 where o.partial and o.bytes < excluded.bytes`

	// keepLate bounds writing the output when the run's context has ended: the runner doesn't wait long.
	keepLate = time.Second

	soFarTimeout = 5 * time.Second
)

// MostSoFar is how many bytes of head and tail [Run.KeepSoFar] takes at a time.
const MostSoFar = 32 << 10

// Keep stores the run's output in place of what it stored before. It is a log and no result: it is written also when the
// context has ended or the lease is lost, and it needs no guard, since nobody else writes this run's.
func (r *Run) Keep(ctx context.Context, o Output) error {
	limit := callTimeout
	if ctx.Err() != nil {
		limit = keepLate
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return r.keep(ctx, r.runner.pool, o)
}

// KeepSoFar stores what the run has said until now, so that it is there when its process dies. It is written under the
// token: after the lease it does nothing, and [Run.Keep] replaces it at the end. Call it every few seconds at most, when
// there is something new, and with at most [MostSoFar] bytes.
func (r *Run) KeepSoFar(ctx context.Context, o Output) error {
	if n := len(o.Head) + len(o.Tail); n > MostSoFar {
		return fmt.Errorf("jobs: output so far of %s %s has %d bytes: keep %d at most", r.Job, r.Period.Key, n, MostSoFar)
	}
	ctx, cancel := context.WithTimeout(ctx, soFarTimeout)
	defer cancel()
	_, err := r.runner.pool.Exec(ctx, soFarSQL, r.ID.String(), r.token.Lock, r.token.Seq, notNull(o.Head), notNull(o.Tail), o.Bytes)
	if err != nil {
		return fmt.Errorf("jobs: output so far of %s %s: %w", r.Job, r.Period.Key, err)
	}
	return nil
}

// KeepTx is [Run.Keep] in the transaction that [Run.Tx] or [Run.Complete] gave: the output is there when the run has
// ended.
func (r *Run) KeepTx(ctx context.Context, tx pgx.Tx, o Output) error { return r.keep(ctx, tx, o) }

func (r *Run) keep(ctx context.Context, to execer, o Output) error {
	_, err := to.Exec(ctx, keepSQL, r.ID.String(), notNull(o.Head), notNull(o.Tail), o.Bytes)
	if err != nil {
		return fmt.Errorf("jobs: output of %s %s: %w", r.Job, r.Period.Key, err)
	}
	return nil
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Output reads the output of a run. The error is [ErrNoOutput] when there is none: the run wrote nothing yet, or its
// output isn't kept any more. Lists of runs carry no output.
func (h *History) Output(ctx context.Context, run uuid.UUID) (o OutputRecord, err error) {
	const sql = `select head, tail, bytes, at, partial from pawl.outputs where run = $1::text::uuid`
	err = h.read(ctx, "output", func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, sql, run.String()).Scan(&o.Head, &o.Tail, &o.Bytes, &o.At, &o.Partial)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return o, fmt.Errorf("%w of run %s", ErrNoOutput, run)
	}
	utc(&o.At)
	return o, err
}

// ErrNoOutput says that nothing is kept of what a run has said.
var ErrNoOutput = errors.New("jobs: no output")
