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

const (
	guardOneSQL   = `select pawl.guard_one($1, $2)`
	codeIsolation = "PW006" // its answer where transactions aren't READ COMMITTED by default
)

// Exec runs one statement under the token, in a transaction of its own: guard and statement go in one round trip, where
// [Do] needs three. It needs no second guard: nothing can come between. Errors are those of Do; a refusal is recorded.
func Exec(ctx context.Context, db Sender, tok Token, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := tok.check(); err != nil {
		return pgconn.CommandTag{}, err
	}
	// What is sent without BEGIN, up to one synchronization, is one transaction.
	tag, err := execBatch(ctx, db, tok, "", sql, args)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == codeIsolation { // nothing was done
		tag, err = execBatch(ctx, db, tok, "begin isolation level read committed", sql, args)
	}
	if err == nil {
		return tag, nil
	}
	err = wrapExec(err, tok)
	if refusal(err) {
		record(ctx, db, tok, err, sql)
	}
	return pgconn.CommandTag{}, err
}

func execBatch(ctx context.Context, db Sender, tok Token, begin, sql string, args []any) (tag pgconn.CommandTag, err error) {
	b := &pgx.Batch{}
	if begin != "" {
		b.Queue(begin)
	}
	b.Queue(guardOneSQL, tok.Lock, tok.Seq)
	b.Queue(sql, args...).Exec(func(t pgconn.CommandTag) error { tag = t; return nil })
	if begin != "" {
		b.Queue("commit")
	}
	if err = db.SendBatch(ctx, b).Close(); err != nil {
		leaveAborted(ctx, db)
	}
	return tag, err
}

// wrapExec types the error of a batch that holds COMMIT: what the server has refused is a clear no, and what it didn't
// answer may have been carried out.
func wrapExec(err error, tok Token) error {
	if unsent := (pgx.ErrPreprocessingBatch{}); !errors.As(err, &unsent) && lost(err) {
		return fmt.Errorf("%w (%s): %w", ErrUnknown, tok, err)
	}
	return wrapAs("exec", err, tok)
}
