package fence

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Sender is a [DB] that sends a batch: *pgxpool.Pool and *pgx.Conn.
type Sender interface {
	DB
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

const execGuardSQL = `select pawl.guard($1, $2)`

// Exec runs one statement under the token, in a transaction of its own: BEGIN, guard, statement and COMMIT in one round
// trip, where [Do] needs three. It needs no second guard: nothing can come between. Errors are those of Do; a refusal is
// recorded, and costs a pool one connection.
func Exec(ctx context.Context, db Sender, tok Token, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := tok.check(); err != nil {
		return pgconn.CommandTag{}, err
	}
	var tag pgconn.CommandTag
	b := &pgx.Batch{}
	b.Queue("begin isolation level read committed")
	b.Queue(execGuardSQL, tok.Lock, tok.Seq)
	b.Queue(sql, args...).Exec(func(t pgconn.CommandTag) error { tag = t; return nil })
	b.Queue("commit")
	err := db.SendBatch(ctx, b).Close()
	if err == nil {
		return tag, nil
	}
	leaveAborted(ctx, db)
	err = wrapExec(err, tok)
	if refusal(err) {
		record(ctx, db, tok, err, sql)
	}
	return pgconn.CommandTag{}, err
}

// wrapExec types the error of a batch that holds COMMIT: what the server has refused is a clear no, and what it didn't
// answer may have been carried out.
func wrapExec(err error, tok Token) error {
	if unsent := (pgx.ErrPreprocessingBatch{}); !errors.As(err, &unsent) && lost(err) {
		return fmt.Errorf("%w (%s): %w", ErrUnknown, tok, err)
	}
	return wrapAs("exec", err, tok)
}
