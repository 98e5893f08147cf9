package fence_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// waits tells whether some backend of this database waits for a lock.
func waits(t testing.TB, pool *pgxpool.Pool) bool {
	t.Helper()
	return one[bool](t, pool, `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`)
}

// An error frees the row at once; an answer without a row would keep it for as long as the client is silent.
func TestARefusedGuardHoldsNothingThoughItsTransactionIsOpen(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	expire(t, pool, a)
	tx := begin(t, pool, pgx.TxOptions{})
	wantErr(t, fence.Guard(t.Context(), tx, a), fence.ErrNotHeld)
	if _, granted := tryAcquire(t, pool, a.Lock, "b", time.Minute); !granted {
		t.Error("the refused transaction, whose client is silent, keeps the lock's row")
	}
}

// Silence is bounded by the whole TTL: what was left of the lease at the guard says nothing of a holder that renews.
func TestAGuardLateInALeaseDoesNotEndAHolderThatRenews(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	a := acquire(t, pool, "job:x", "a", 10*time.Second)
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() + interval '500 ms'`)
	tx := begin(t, pool, fence.BeginOptions(a, 0))
	left := one[time.Time](t, pool, `select expires_at from pawl.locks`)
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() + ttl`)
	pgtest.Eventually(t, 5*time.Second, "it has been silent for longer than was left at the guard", func() bool {
		return one[bool](t, pool, `select clock_timestamp() > $1::timestamptz + interval '300 ms'`, left)
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Errorf("commit of a holder that has renewed: %v", err)
	}
}

// The lease ends while the guard waits for the row, and the blocker rolls back: the clock is read after the wait.
func TestAGuardThatHadToWaitJudgesTheRowThatItHasLocked(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	a := acquire(t, pool, "job:x", "a", 500*time.Millisecond)
	blocker := begin(t, pool, pgx.TxOptions{})
	exec(t, blocker, `select from pawl.locks for update`)
	tx := begin(t, pool, pgx.TxOptions{})
	guarded := make(chan error, 1)
	go func() { guarded <- fence.Guard(context.WithoutCancel(t.Context()), tx, a) }()
	pgtest.Eventually(t, 10*time.Second, "the guard waits and the lease is over", func() bool {
		return waits(t, pool) && one[bool](t, pool, `select expires_at <= clock_timestamp() from pawl.locks`)
	})
	if err := blocker.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantErr(t, <-guarded, fence.ErrNotHeld)
}

// No time limit of an idle transaction runs while a statement does.
func TestAHolderThatDiesInsideAStatementIsFoundByTheServer(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	config := pool.Config().ConnConfig
	dial, sockets := config.DialFunc, make(chan net.Conn, 9)
	var killed atomic.Bool
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if killed.Load() {
			return nil, errors.New("the dead ask for no cancellation")
		}
		c, err := dial(ctx, network, addr)
		sockets <- c
		return c, err
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	tx := begin(t, conn, fence.BeginOptions(a, 0))
	dead := make(chan error, 1)
	go func() { _, err := tx.Exec(context.WithoutCancel(t.Context()), `select pg_sleep(60)`); dead <- err }()
	pgtest.Eventually(t, 10*time.Second, "the holder is inside its statement", func() bool {
		return one[bool](t, pool, `select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')`)
	})
	killed.Store(true)
	for len(sockets) > 0 { // kill -9: the kernel closes them
		_ = (<-sockets).Close()
	}
	if err := <-dead; err == nil {
		t.Fatal("the statement has ended by itself")
	}
	expire(t, pool, a)
	pgtest.Eventually(t, 10*time.Second, "the successor is granted", func() bool {
		_, granted := tryAcquire(t, pool, a.Lock, "b", time.Minute)
		return granted
	})
}

// At REPEATABLE READ a guard may still see a lease that was released since its snapshot. It keeps the successor out all the same.
func TestAnOldSnapshotsGuardKeepsTheSuccessorOut(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	tx := begin(t, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	exec(t, tx, `select 1 from pawl.locks`) // the snapshot
	exec(t, pool, `update pawl.locks set grant_id = null, holder = null, expires_at = null`)
	if err := fence.Guard(t.Context(), tx, a); err != nil {
		t.Fatalf("guard: %v; if it is refused now, say so in docs/protocol.md", err)
	}
	if _, granted := tryAcquire(t, pool, a.Lock, "b", time.Minute); granted {
		t.Error("granted beside an open guarded transaction")
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	acquire(t, pool, a.Lock, "b", time.Minute)
}

// The block is a savepoint, and its guard goes with it.
func TestAGuardInAnExceptionBlockGoesButTheOneAtCommitStops(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	tx := begin(t, pool, pgx.TxOptions{CommitQuery: fence.BeginOptions(a, 0).CommitQuery})
	exec(t, tx, fmt.Sprintf(`do $$ begin perform pawl.guard('job:x', %d); perform 1/0; exception when division_by_zero then null; end $$`, a.Seq))
	b := takeOver(t, pool, a) // this is the hole
	if err := fence.Do(t.Context(), pool, b, write(t.Context(), b)); err != nil {
		t.Fatal(err)
	}
	exec(t, tx, `insert into ledger values (1, $1)`, a.Seq)
	wantErr(t, fence.WrapCommit(tx.Commit(t.Context()), a), fence.ErrStale, fence.ErrNotHeld)
	if n := rows(); n != 1 {
		t.Errorf("%d rows; the older token committed after the newer", n)
	}
}

// The end of a lease, or of its caller, must not turn a success into a doubt.
func TestACommitThatIsUnderWayIsNotCutOffByItsCaller(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	exec(t, pool, `create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.5); return null; end $$`)
	exec(t, pool, `create constraint trigger slow after insert on ledger deferrable initially deferred for each row execute function slow()`)
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- fence.Do(ctx, pool, tok, write(ctx, tok)) }()
	pgtest.Eventually(t, 10*time.Second, "COMMIT is under way", func() bool {
		return one[bool](t, pool, `select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')`)
	})
	cancel()
	if err := <-done; err != nil || rows() != 1 {
		t.Errorf("Do = %v, %d rows; want its success", err, rows())
	}
}

// Who has marked a target first and guards afterwards meets a successor that guards first and then claims: neither waits for the other.
func TestAnOldHolderThatGuardsAfterItsMarkDoesNotDeadlockWithAClaim(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	old := begin(t, pool, pgx.TxOptions{})
	if err := fence.Check(t.Context(), old, a, "account:42"); err != nil {
		t.Fatal(err)
	}
	b := takeOver(t, pool, a)
	claimed := make(chan error, 1)
	go func() { claimed <- fence.Claim(context.WithoutCancel(t.Context()), pool, b, "account:42") }()
	pgtest.Eventually(t, 10*time.Second, "the claim waits for the mark", func() bool { return waits(t, pool) })
	wantErr(t, fence.Guard(t.Context(), old, a), fence.ErrStale, fence.ErrNotHeld)
	if err := old.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-claimed; err != nil {
		t.Errorf("the successor's claim: %v", err)
	}
}

func TestOneTransactionMayWriteTheTablesOfTwoLocks(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ledger(t, pool)
	exec(t, pool, `create table public.report (id int)`)
	protect(t, pool, "ledger", "job:x", fence.Enforce)
	protect(t, pool, "report", "job:y", fence.Enforce)
	x, y := acquire(t, pool, "job:x", "a", time.Minute), acquire(t, pool, "job:y", "a", time.Minute)
	err := fence.Do(t.Context(), pool, x, func(tx pgx.Tx) error {
		if err := fence.Guard(t.Context(), tx, y); err != nil {
			return err
		}
		exec(t, tx, `insert into report values (1)`)
		return write(t.Context(), x)(tx)
	})
	if err != nil {
		t.Error(err)
	}
}

// What docs/protocol.md says of a lost reply: a row that was updated can be waited for, one that was inserted can't be seen,
// but its key can be waited for.
func TestTheOutcomeOfACommitIsAskedForByARowThatWasUpdatedOrByAKey(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	exec(t, pool, `create table public.entry (id int primary key, n int)`)
	exec(t, pool, `insert into entry values (1, 0)`)
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	for _, ask := range []string{
		`select n from entry where id = 1 for update`,
		`with mine as (insert into entry values (2, 0) on conflict do nothing returning 1) select 1 - count(*) from mine`,
	} {
		tx := begin(t, pool, fence.BeginOptions(tok, 0))
		exec(t, tx, `update entry set n = 1 where id = 1`)
		exec(t, tx, `insert into entry values (2, 1)`)
		if n := one[int](t, pool, `select count(*) from (select from entry where id = 2 for update) x`); n != 0 {
			t.Error("a row that isn't committed is seen")
		}
		answer := make(chan int, 1)
		go func() {
			var n int
			if err := pool.QueryRow(context.WithoutCancel(t.Context()), ask).Scan(&n); err != nil {
				t.Error(err)
			}
			answer <- n
		}()
		pgtest.Eventually(t, 10*time.Second, "who asks waits", func() bool { return waits(t, pool) })
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := <-answer; n != 1 {
			t.Errorf("%s: %d, want 1: it was committed", ask, n)
		}
		exec(t, pool, `delete from entry where id = 2`)
	}
}
