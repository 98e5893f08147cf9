package fence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// endTimeout bounds COMMIT and ROLLBACK, which go on when the caller's context has ended.
const endTimeout = 5 * time.Second

// Options change what [DoWith] does. The zero value is what [Do] uses.
type Options struct {
	// TTL is how long the transaction may be silent before the server ends it. Zero: the lease's own TTL.
	TTL time.Duration
	// Statement is what the record of a refusal calls this transaction, for people. Empty: begin, write or commit,
	// or the command that a protected table refused.
	Statement string
}

// Do runs fn in a READ COMMITTED transaction that is tied to the lease of tok, and commits it: begin and guard, fn,
// guard and commit, which is two round trips more than fn's own. Either all of it is committed before the lock is
// granted to anybody else, or nothing is. fn must not end the transaction itself, nor be silent in it for as long as the
// lease lasts: the server would end it.
//
// An error of fn rolls back and comes back as it was, except that refusals are typed (see [Wrap]). ctx is looked at
// before COMMIT is sent; COMMIT itself has 5 s of its own, so that a lease's end can't turn a success into a doubt.
// Errors: [*StaleError], [ErrUnfenced], [ErrOtherLock] for refusals, which are recorded; [ErrUnknown] when the reply to
// COMMIT was lost. On a plain *pgx.Conn a refused commit, like a lost one, closes the connection.
func Do(ctx context.Context, db DB, tok Token, fn func(tx pgx.Tx) error) error {
	return DoWith(ctx, db, tok, Options{}, fn)
}

// DoWith is [Do] with options.
func DoWith(ctx context.Context, db DB, tok Token, o Options, fn func(tx pgx.Tx) error) error {
	if err := tok.check(); err != nil {
		return err
	}
	step, err := do(ctx, db, tok, o.TTL, fn)
	if refusal(err) {
		if o.Statement != "" {
			step = o.Statement
		}
		record(ctx, db, tok, err, step) // the transaction is over: one connection is enough
	}
	return err
}

// do says at which step it failed.
func do(ctx context.Context, db DB, tok Token, ttl time.Duration, fn func(tx pgx.Tx) error) (step string, err error) {
	tx, err := db.BeginTx(ctx, BeginOptions(tok, ttl))
	if err != nil {
		leaveAborted(ctx, db)
		return "begin", wrapAs("begin", err, tok)
	}
	// Also when fn panics. After a commit it does nothing.
	defer rollback(ctx, tx)
	if err := fn(tx); err != nil {
		return "write", Wrap(err, tok)
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("fence: %s: not committed: %w", tok, context.Cause(ctx))
	}
	return "commit", commit(ctx, tx, tok)
}

func commit(ctx context.Context, tx pgx.Tx, tok Token) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return WrapCommit(tx.Commit(ctx), tok)
}

// WrapCommit is [Wrap] for the error of a COMMIT, for callers that commit themselves: besides, it tells a COMMIT whose
// reply was lost ([ErrUnknown]) from one that was not carried out. Give COMMIT a context of its own.
func WrapCommit(err error, tok Token) error {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case lost(err):
		return fmt.Errorf("%w (%s): %w", ErrUnknown, tok, err)
	case errors.As(err, &pg) && pg.Code == "25P02":
		// The guard finds the transaction aborted where a plain COMMIT would have rolled back in silence.
		return fmt.Errorf("fence: commit %s: a statement had failed before: %w", tok, pgx.ErrTxCommitRollback)
	}
	return wrapAs("commit", err, tok)
}

// lost says whether a COMMIT that failed with err may have been carried out. An ERROR is a clear no. A connection that
// ended is no answer, except where the server says that it ended before COMMIT came (25P03, the idle limit).
func lost(err error) bool {
	if errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, pgx.ErrTxCommitRollback) || pgconn.SafeToRetry(err) {
		return false
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return true
	}
	fatal := pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC"
	return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "57P") || fatal && pg.Code != "25P03"
}

func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// leaveAborted ends the aborted transaction in which a refused begin leaves a single connection. A pool closes such a
// connection by itself.
func leaveAborted(ctx context.Context, db DB) {
	var conn *pgx.Conn
	switch c := db.(type) {
	case *pgx.Conn:
		conn = c
	case interface{ Conn() *pgx.Conn }: // *pgxpool.Conn
		conn = c.Conn()
	}
	if conn == nil || conn.IsClosed() || conn.PgConn().TxStatus() != 'E' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "rollback")
}
