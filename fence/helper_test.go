package fence_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
)

// acquireSQL is the part of acquire that the fence relies on: never wait, lock FOR UPDATE, write the tenure.
const acquireSQL = `
with k as materialized (select incarnation, floor from pawl.clock),
cur as materialized (select from pawl.locks where name = $1),
free as materialized (
  select * from pawl.locks where name = $1 and (grant_id is null or expires_at <= clock_timestamp()) for update skip locked
), taken as (
  update pawl.locks l set token = pawl.next_token(f.token, true, k.floor), grant_id = gen_random_uuid(), holder = $2, ttl = $3::interval,
         acquired_at = clock_timestamp(), renewed_at = clock_timestamp(), expires_at = clock_timestamp() + $3::interval
    from free f cross join k where l.name = f.name returning l.token
), born as (
  insert into pawl.locks (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
  select $1, pawl.next_token(null, true, k.floor), k.incarnation, gen_random_uuid(), $2, $3::interval,
         clock_timestamp(), clock_timestamp(), clock_timestamp() + $3::interval
    from k where not exists (select from cur) returning token
), ended as (
  insert into pawl.tenures (lock, token, grant_id, holder, acquired_at, ended_at, how, successor)
  select f.name, f.token, f.grant_id, f.holder, f.acquired_at, least(f.expires_at, clock_timestamp()), 'taken_over', t.token
    from free f cross join taken t where f.grant_id is not null
)
select token from taken union all select token from born`

// tryAcquire asks once; granted is false when somebody holds the lock.
func tryAcquire(t testing.TB, pool *pgxpool.Pool, lock, holder string, ttl time.Duration) (tok fence.Token, granted bool) {
	t.Helper()
	tok.Lock = lock
	err := pool.QueryRow(t.Context(), acquireSQL, lock, holder, ttl).Scan(&tok.Seq)
	if errors.Is(err, pgx.ErrNoRows) {
		return tok, false
	}
	if err != nil {
		t.Fatalf("acquire %q: %v", lock, err)
	}
	return tok, true
}

func acquire(t testing.TB, pool *pgxpool.Pool, lock, holder string, ttl time.Duration) fence.Token {
	t.Helper()
	tok, granted := tryAcquire(t, pool, lock, holder, ttl)
	if !granted {
		t.Fatalf("%q was not granted to %s", lock, holder)
	}
	return tok
}

// expire moves a lease's end into the past, as if its holder had slept.
func expire(t testing.TB, pool *pgxpool.Pool, tok fence.Token) {
	t.Helper()
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = $1 and token = $2`, tok.Lock, tok.Seq)
}

// takeOver lets b take the lock from a, who has slept.
func takeOver(t testing.TB, pool *pgxpool.Pool, a fence.Token) (b fence.Token) {
	t.Helper()
	expire(t, pool, a)
	return acquire(t, pool, a.Lock, "b", time.Minute)
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func exec(t testing.TB, db execer, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// one scans the only column of the only row.
func one[T any](t testing.TB, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, sql string, args ...any,
) (v T) {
	t.Helper()
	if err := db.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// ledger makes a table to write to and returns how many rows it has.
func ledger(t testing.TB, pool *pgxpool.Pool) (rows func() int) {
	t.Helper()
	exec(t, pool, `create table public.ledger (id int, token bigint)`)
	return func() int { return one[int](t, pool, `select count(*) from ledger`) }
}

// write is what a holder does in these tests.
func write(ctx context.Context, tok fence.Token) func(tx pgx.Tx) error {
	return func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into ledger values (1, $1)`, tok.Seq)
		return err
	}
}

func begin(t testing.TB, db fence.DB, o pgx.TxOptions) pgx.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	late := context.WithoutCancel(t.Context()) // the test's own is over by then
	t.Cleanup(func() { _ = tx.Rollback(late) })
	return tx
}

// wantErr checks which of the sentinels err is, and that it is no other.
func wantErr(t testing.TB, err error, want ...error) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want %v", want)
	}
	all := []error{
		fence.ErrStale, fence.ErrNotHeld, fence.ErrUnfenced, fence.ErrOtherLock,
		fence.ErrOtherDatabase, fence.ErrUnknown, fence.ErrNested,
	}
	for _, s := range all {
		if wanted := slices.Contains(want, s); errors.Is(err, s) != wanted {
			t.Errorf("%v: is %q: %v, want %v", err, s, !wanted, wanted)
		}
	}
}
