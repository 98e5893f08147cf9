package lockrepo

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// callTimeout bounds what has no deadline of its own.
const callTimeout = 10 * time.Second

// query is one statement with its parameters and what reads its rows.
type query struct {
	sql  string
	args []any
	read func(pgx.Rows) error
}

// Whatever the role's default is, the protocol needs READ COMMITTED. A database whose transactions are read-only by default
// is meant to be left alone: it refuses our writes too.
const beginSQL = "begin isolation level read committed"

// one runs q in a transaction of its own, in one round trip. The server gives
// up after limit by itself (0: no limit), so that the connection survives and
// nobody's abandoned statement goes on waiting.
func one(ctx context.Context, c *pgx.Conn, limit time.Duration, q query) error {
	b := &pgx.Batch{}
	b.Queue(beginSQL)
	if limit > 0 {
		b.Queue("select set_config('statement_timeout', $1, true)", strconv.FormatInt(max(limit.Milliseconds(), 1), 10))
	}
	b.Queue(q.sql, q.args...).Query(q.read)
	b.Queue("commit")
	err := c.SendBatch(ctx, b).Close()
	if err != nil && !c.IsClosed() && c.PgConn().TxStatus() != 'I' {
		_, _ = c.Exec(ctx, "rollback") // else the pool throws the connection away
	}
	return err
}

// stepwise is one for a connection that would prepare statements behind a
// pooler: each step is a round trip, and nothing is prepared.
func stepwise(ctx context.Context, c *pgx.Conn, q query) error {
	tx, err := c.BeginTx(ctx, pgx.TxOptions{BeginQuery: beginSQL})
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	rows, err := tx.Query(ctx, q.sql, append([]any{pgx.QueryExecModeExec}, q.args...)...)
	if err != nil {
		return err
	}
	if err := q.read(rows); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// outcomeBegin is what a function of pawl's answers when the role's default
// isn't READ COMMITTED.
const outcomeBegin = "begin"

// alone runs q without BEGIN and COMMIT around it, which are a good part of a
// short call. If the function that it calls wants a transaction of its own
// kind, it is asked again inside one.
func (r *Repo) alone(ctx context.Context, q query, outcome *string) error {
	err := r.on(ctx, func(ctx context.Context, c *pgx.Conn, plain bool) error {
		args := q.args
		if plain {
			args = append([]any{pgx.QueryExecModeExec}, args...)
		}
		rows, err := c.Query(ctx, q.sql, args...)
		if err != nil {
			return err
		}
		return q.read(rows)
	})
	if err != nil || *outcome != outcomeBegin {
		return err
	}
	return r.ask(ctx, q)
}

// ask runs q on a connection of Config.Pool, in a transaction of its own.
func (r *Repo) ask(ctx context.Context, q query) error {
	return r.on(ctx, func(ctx context.Context, c *pgx.Conn, plain bool) error {
		if plain {
			return stepwise(ctx, c, q)
		}
		return one(ctx, c, 0, q)
	})
}

// on calls do with a connection of Config.Pool, and says whether it must not
// prepare statements.
func (r *Repo) on(ctx context.Context, do func(ctx context.Context, c *pgx.Conn, plain bool) error) error {
	soon, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, own := ctx.Deadline(); !own {
		ctx = soon
	}
	c, err := r.cfg.Pool.Acquire(soon)
	if err != nil {
		return unsentError{err}
	}
	defer c.Release()
	plain, err := r.mustNotPrepare(soon, c.Conn())
	if err != nil {
		return unsentError{err}
	}
	defer r.m.roundTrip(time.Now())
	return do(ctx, c.Conn(), plain)
}

// unsentError is a failure before the statement was sent.
type unsentError struct{ error }

// Unwrap returns the failure.
func (e unsentError) Unwrap() error { return e.error }

const (
	poolerAbsent = iota + 1
	poolerFound
)

// mustNotPrepare finds out, once, whether c would prepare statements through a
// pooler.
func (r *Repo) mustNotPrepare(ctx context.Context, c *pgx.Conn) (bool, error) {
	switch c.Config().DefaultQueryExecMode {
	case pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec:
	default:
		return false, nil
	}
	if known := r.pooled.Load(); known != 0 {
		return known == poolerFound, nil
	}
	found, err := pooled(ctx, c)
	if err != nil {
		return false, err
	}
	r.pooled.Store(poolerAbsent)
	if found {
		r.pooled.Store(poolerFound)
	}
	return found, nil
}

// single reads exactly one row.
func single(dest ...any) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		defer rows.Close()
		if !rows.Next() {
			if err := rows.Err(); err != nil {
				return err
			}
			return pgx.ErrNoRows
		}
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		rows.Close()
		return rows.Err()
	}
}
