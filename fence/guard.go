package fence

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// DB is what begins transactions: *pgxpool.Pool, *pgxpool.Conn or *pgx.Conn.
type DB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Guard ties tx, at any isolation level, to the lease that tok belongs to: from now until tx ends nobody else is
// granted the lock. Call it first, on the outermost transaction, and roll back when it fails; then tx can do nothing
// else. Prefer [Do], which also guards the commit.
//
// It sets, for this transaction only: idle_in_transaction_session_timeout to the lease's TTL,
// client_connection_check_interval, application_name, and pawl.lease, which protected tables ask for. Guards of
// several locks may follow one another.
//
// The error is a [*StaleError]: [ErrNotHeld] when the lease has ended, [ErrStale] too when a newer token exists; or
// [ErrNested].
func Guard(ctx context.Context, tx pgx.Tx, tok Token) error {
	if err := tok.check(); err != nil {
		return err
	}
	if nested(tx) {
		return ErrNested
	}
	// Without arguments: one message to the server, also through a pooler that knows no prepared statements.
	_, err := tx.Exec(ctx, guardSQL(tok))
	return wrapAs("guard", err, tok)
}

// BeginOptions are for callers that begin transactions themselves: BEGIN with the guard, in one round trip, and the
// guard again with COMMIT. The isolation level is READ COMMITTED. The server ends a transaction that is silent for
// ttl; zero means the lease's own TTL. A begin that fails wants [Wrap].
func BeginOptions(tok Token, ttl time.Duration) pgx.TxOptions {
	return BeginOptionsAt(pgx.ReadCommitted, tok, ttl)
}

// BeginOptionsAt is [BeginOptions] at another isolation level. At REPEATABLE READ and SERIALIZABLE a stale guard fails with
// 40001, which [Wrap] makes [ErrStale].
func BeginOptionsAt(level pgx.TxIsoLevel, tok Token, ttl time.Duration) pgx.TxOptions {
	begin := "begin isolation level " + string(level) + "; " + guardSQL(tok)
	if ttl > 0 {
		begin += "; " + idleSQL(ttl)
	}
	return pgx.TxOptions{BeginQuery: begin, CommitQuery: guardAgainSQL(tok) + "; commit"}
}

func guardSQL(tok Token) string {
	return "select pawl.guard(" + quote(tok.Lock) + ", " + strconv.FormatInt(tok.Seq, 10) + ")"
}

func guardAgainSQL(tok Token) string {
	return "select pawl.guard_again(" + quote(tok.Lock) + ", " + strconv.FormatInt(tok.Seq, 10) + ")"
}

// idleSQL is at least 1 ms: 0 would mean never.
func idleSQL(ttl time.Duration) string {
	ms := min(max(ttl.Milliseconds(), 1), math.MaxInt32)
	return "set local idle_in_transaction_session_timeout = " + strconv.FormatInt(ms, 10)
}

// nested says whether tx is one of pgx's savepoints. The type isn't exported; a test pins its name.
func nested(tx pgx.Tx) bool { return fmt.Sprintf("%T", tx) == "*pgx.dbSimulatedNestedTx" }

// quote writes s as a string constant in plain ASCII without quotes and backslashes of its own, so that neither
// standard_conforming_strings nor the client's encoding can make it end early.
func quote(s string) string {
	var b strings.Builder
	b.WriteString("E'")
	for _, r := range s {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune(" :/._-+@#=,*()", r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// wrapAs is Wrap, with what was tried before errors that aren't ours.
func wrapAs(what string, err error, tok Token) error {
	if err == nil {
		return nil
	}
	if wrapped := Wrap(err, tok); refusal(wrapped) {
		return wrapped
	}
	return fmt.Errorf("fence: %s %s: %w", what, tok, err)
}
