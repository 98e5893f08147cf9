package fence_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// A transaction pooler gives each transaction any server connection: nothing may need, or stay on, a session.
func TestTheFenceWorksBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	direct, pooled := pgtest.Open(t, url), pgtest.Open(t, pgtest.Pooler(t, url))
	rows := ledger(t, direct)
	protect(t, pooled, "public.ledger", "job:*", fence.Enforce)
	a := acquire(t, pooled, "job:it's", "a", time.Minute)
	if err := fence.Claim(t.Context(), pooled, a, "account:42"); err != nil {
		t.Fatal(err)
	}
	err := fence.Do(t.Context(), pooled, a, func(tx pgx.Tx) error {
		if err := fence.Check(t.Context(), tx, a, "account:42"); err != nil {
			return err
		}
		if err := fence.Once(t.Context(), tx, a, "mail:42"); err != nil {
			return err
		}
		return write(t.Context(), a)(tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	tx := begin(t, pooled, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err := fence.Guard(t.Context(), tx, a); err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context(), a)(tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil || rows() != 2 {
		t.Fatalf("commit: %v, %d rows", err, rows())
	}
	// The next client of the same server connection has no lease.
	wantErr(t, bare(t, pooled, `delete from ledger`), fence.ErrUnfenced)
	const left = `select concat(current_setting('idle_in_transaction_session_timeout'), nullif(current_setting('pawl.lease', true), ''))`
	if got := one[string](t, pooled, left); got != "0" {
		t.Errorf("left on the server connection: %s", got)
	}
	takeOver(t, direct, a)
	wantErr(t, fence.Do(t.Context(), pooled, a, write(t.Context(), a)), fence.ErrStale, fence.ErrNotHeld)
	if n := one[int](t, direct, `select count(*) from pawl.refusals`); n != 1 || rows() != 2 {
		t.Errorf("%d refusals, %d rows", n, rows())
	}
}
