package fence_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/internal/pgtest"
)

func TestGuardOnANestedTransactionIsRefused(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, db := range []fence.DB{pool, conn, conn.Conn()} {
		tx := begin(t, db, pgx.TxOptions{})
		nested, err := tx.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantErr(t, fence.Guard(t.Context(), nested, tok), fence.ErrNested)
		deeper, err := nested.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantErr(t, fence.Guard(t.Context(), deeper, tok), fence.ErrNested)
		if err := fence.Guard(t.Context(), tx, tok); err != nil {
			t.Errorf("%T: on the outermost: %v", db, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAGuardInASavepointGoesButTheOneAtCommitStops(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	tx := begin(t, pool, pgx.TxOptions{CommitQuery: fence.BeginOptions(a, 0).CommitQuery})
	exec(t, tx, `savepoint s`)
	exec(t, tx, `select pawl.guard($1, $2)`, a.Lock, a.Seq)
	expire(t, pool, a)
	if _, granted := tryAcquire(t, pool, a.Lock, "b", time.Minute); granted {
		t.Fatal("the guard kept nobody out")
	}
	exec(t, tx, `rollback to savepoint s`)
	b := acquire(t, pool, a.Lock, "b", time.Minute) // this is the hole
	if err := fence.Do(t.Context(), pool, b, write(t.Context(), b)); err != nil {
		t.Fatal(err)
	}
	exec(t, tx, `insert into ledger values (1, $1)`, a.Seq)
	wantErr(t, fence.WrapCommit(tx.Commit(t.Context()), a), fence.ErrStale, fence.ErrNotHeld)
	if n := rows(); n != 1 {
		t.Errorf("%d rows; the older token committed after the newer", n)
	}
}

func TestATakeoverWaitsForTheOpenGuardedTransaction(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	tx := begin(t, pool, fence.BeginOptions(a, 0))
	expire(t, pool, a)
	asked := time.Now()
	if _, granted := tryAcquire(t, pool, a.Lock, "b", time.Minute); granted {
		t.Fatal("granted beside an open guarded transaction")
	}
	if took := time.Since(asked); took > 5*time.Second {
		t.Errorf("acquire waited %s", took)
	}
	exec(t, tx, `insert into ledger values (1, $1)`, a.Seq)
	// No time test at the commit: nobody could come between.
	if err := tx.Commit(t.Context()); err != nil || rows() != 1 {
		t.Fatalf("commit: %v, %d rows", err, rows())
	}
	b := acquire(t, pool, a.Lock, "b", time.Minute)
	if b.Seq <= a.Seq {
		t.Errorf("token %d after %d", b.Seq, a.Seq)
	}
}

func TestARenewalPassesTheGuard(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	tx := begin(t, pool, fence.BeginOptions(a, 0))
	exec(t, tx, `select 1`)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := pool.Exec(ctx, `update pawl.locks set expires_at = clock_timestamp() + ttl where name = $1`, a.Lock); err != nil {
		t.Fatalf("a renewal waited for the guard: %v", err)
	}
}

func TestAtRepeatableReadARenewedHolderPasses(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	if err := fence.Protect(t.Context(), pool, "ledger", "job:*", fence.Enforce); err != nil {
		t.Fatal(err)
	}
	const ttl = time.Second
	a := acquire(t, pool, "job:x", "a", ttl)
	tx := begin(t, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err := fence.Guard(t.Context(), tx, a); err != nil {
		t.Fatal(err)
	}
	first := one[time.Time](t, pool, `select expires_at from pawl.locks`)
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() + interval '1 min'`)
	pgtest.Eventually(t, 5*time.Second, "the snapshot's lease is over", func() bool {
		exec(t, tx, `select 1`) // not idle
		return one[bool](t, pool, `select clock_timestamp() > $1`, first)
	})
	exec(t, tx, `insert into ledger values (1, $1)`, a.Seq)
	exec(t, tx, `select pawl.guard_again($1, $2)`, a.Lock, a.Seq)
	if err := tx.Commit(t.Context()); err != nil || rows() != 1 {
		t.Errorf("commit: %v, %d rows", err, rows())
	}
}

func TestAtRepeatableReadAStaleHolderIsStale(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	tx := begin(t, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	exec(t, tx, `select 1 from pawl.locks`) // the snapshot
	takeOver(t, pool, a)
	err := fence.Guard(t.Context(), tx, a)
	wantErr(t, err, fence.ErrStale, fence.ErrNotHeld)
	if stale := asStale(t, err); stale.Code != "40001" {
		t.Errorf("code %s", stale.Code)
	}
}

func TestTheGuardsSettingsAreTheTransactionsOwn(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ledger(t, pool)
	a := acquire(t, pool, "job:x", "a", 40*time.Second)
	b := acquire(t, pool, "job:y", "a", 50*time.Second)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	const settings = `select concat_ws('|', current_setting('idle_in_transaction_session_timeout'), current_setting('application_name'),
		current_setting('client_connection_check_interval'), nullif(current_setting('pawl.lease', true), ''))`
	before := one[string](t, conn, settings)

	inside := func(o fence.Options, want string) {
		t.Helper()
		err := fence.DoWith(t.Context(), conn, a, o, func(tx pgx.Tx) error {
			if got := one[string](t, tx, settings); got != want {
				t.Errorf("inside: %s, want %s", got, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := one[string](t, conn, settings); got != before {
			t.Errorf("after the commit: %s, before: %s", got, before)
		}
	}
	lease := fmt.Sprintf(`pawl %d|1s|{"job:x": %d}`, a.Seq, a.Seq)
	inside(fence.Options{}, "40s|"+lease) // the lease's own TTL
	inside(fence.Options{TTL: 1500 * time.Millisecond}, "1500ms|"+lease)
	inside(fence.Options{TTL: 365 * 24 * time.Hour}, "2147483647ms|"+lease) // as long as Postgres can

	tx := begin(t, conn, pgx.TxOptions{})
	for _, tok := range []fence.Token{a, b} {
		if err := fence.Guard(t.Context(), tx, tok); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := one[string](t, tx, settings), fmt.Sprintf(`50s|pawl %d|1s|{"job:x": %d, "job:y": %d}`, b.Seq, a.Seq, b.Seq); got != want {
		t.Errorf("two locks: %s, want %s", got, want)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	expire(t, pool, a)
	if err := fence.Do(t.Context(), conn, a, nil); err == nil {
		t.Fatal("an expired lease passed")
	}
	if got := one[string](t, conn, settings); got != before {
		t.Errorf("after a refusal: %s, before: %s", got, before)
	}
	// 0 would mean never.
	if sql := fence.BeginOptions(a, time.Nanosecond).BeginQuery; !strings.HasSuffix(sql, "idle_in_transaction_session_timeout = 1") {
		t.Error(sql)
	}
}

func TestASilentGuardedTransactionIsEndedAfterTheTTL(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	a := acquire(t, pool, "job:x", "a", time.Second)
	tx := begin(t, pool, fence.BeginOptions(a, 0))
	exec(t, tx, `insert into ledger values (1, $1)`, a.Seq)
	pgtest.Eventually(t, 10*time.Second, "the successor is granted", func() bool {
		_, granted := tryAcquire(t, pool, a.Lock, "b", time.Minute)
		return granted
	})
	err := fence.WrapCommit(tx.Commit(t.Context()), a)
	if err == nil || rows() != 0 {
		t.Errorf("commit of the ended transaction: %v, %d rows", err, rows())
	}
}

func TestHostileLockNamesAreOnlyNames(t *testing.T) {
	t.Parallel()
	names := []string{
		`'; drop table ledger; --`, `\'; drop table ledger; --`, `\`, `\\`, `'`, `''`, `"`, `$1`, `$$`, `$x$`, `%s`, `E'\x27'`, "a\nb\r\tc",
		`Übertrag/2026-09`, `決済`, "🔒\u200b\u202e", "\u007f\u0001", `{"a":1}`, `\u0027`, `*`, `a*`, ` `, strings.Repeat("x", 255), strings.Repeat(`'`, 255),
		strings.Repeat("é", 127), "\uffff\U0010ffff", `/* `, `;`, "é\u0301",
	}
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, conforming := range []string{"on", "off"} { // off: where backslashes are escapes in every string
		exec(t, conn, `set standard_conforming_strings = `+conforming)
		for _, name := range names {
			tok := acquire(t, pool, name, conforming, time.Minute)
			err := fence.Do(t.Context(), conn, tok, func(tx pgx.Tx) error {
				if got := one[int64](t, tx, `select (current_setting('pawl.lease')::jsonb ->> $1)::bigint`, name); got != tok.Seq {
					t.Errorf("%q: pawl.lease has %d", name, got)
				}
				return write(t.Context(), tok)(tx)
			})
			if err != nil {
				t.Errorf("%q: %v", name, err)
			}
			exec(t, pool, `update pawl.locks set grant_id = null, expires_at = null where name = $1`, name)
			wantErr(t, fence.Do(t.Context(), conn, tok, write(t.Context(), tok)), fence.ErrNotHeld)
		}
	}
	if got, want := rows(), 2*len(names); got != want {
		t.Errorf("%d rows, want %d", got, want)
	}
	if got := one[int](t, pool, `select count(*) from pawl.locks`); got != len(names) {
		t.Errorf("%d locks, want %d", got, len(names))
	}
}
