package fence_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
)

func protect(t testing.TB, pool *pgxpool.Pool, table, lock string, mode fence.Mode) {
	t.Helper()
	if err := fence.Protect(t.Context(), pool, table, lock, mode); err != nil {
		t.Fatal(err)
	}
}

// bare writes without a lease, as a script of somebody else's does.
func bare(t testing.TB, pool *pgxpool.Pool, sql string) error {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql)
	return fence.Wrap(err, fence.Token{})
}

func TestAnEnforcedTableRefusesEveryUnfencedStatement(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	protect(t, pool, "ledger", "job:x", fence.Enforce)
	tok, other := acquire(t, pool, "job:x", "a", time.Minute), acquire(t, pool, "job:xy", "a", time.Minute)
	if err := fence.Do(t.Context(), pool, tok, write(t.Context(), tok)); err != nil {
		t.Fatal(err)
	}
	statements := []string{
		`insert into ledger values (2, 2)`, `update ledger set id = 2`, `delete from ledger`, `truncate ledger`, `delete from ledger where false`,
		`with w as (delete from ledger returning *) select * from w`, `do $$ begin delete from ledger; end $$`,
	}
	if one[bool](t, pool, `select current_setting('server_version_num')::int >= 150000`) {
		statements = append(statements, `merge into ledger l using (select 1 as id) s on l.id = s.id when matched then delete`)
	}
	for _, sql := range statements {
		wantErr(t, bare(t, pool, sql), fence.ErrUnfenced)
	}
	_, err := pool.CopyFrom(t.Context(), pgx.Identifier{"ledger"}, []string{"id"}, pgx.CopyFromRows([][]any{{1}}))
	wantErr(t, fence.Wrap(err, tok), fence.ErrUnfenced)
	err = fence.Do(t.Context(), pool, other, write(t.Context(), other)) // a lease, but of another lock
	wantErr(t, err, fence.ErrUnfenced)
	const record = `select lock = 'job:xy' and target = 'public.ledger' and statement = 'INSERT' from pawl.refusals`
	if !one[bool](t, pool, record) {
		t.Error("the record is wrong")
	}
	if n := rows(); n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestAnEnforcedTableRefusesATokenThatWasTakenFromIt(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	protect(t, pool, "ledger", "job:x", fence.Enforce)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	b := takeOver(t, pool, a)
	tx := begin(t, pool, pgx.TxOptions{})
	// A guard that went with its savepoint, or never was: only the setting is left.
	exec(t, tx, `select set_config('pawl.lease', jsonb_build_object('job:x', $1::bigint)::text, true)`, a.Seq)
	err := fence.Wrap(write(t.Context(), a)(tx), a)
	wantErr(t, err, fence.ErrStale)
	if s := asStale(t, err); s.Current != b.Seq || s.Holder != "b" || s.Target != "public.ledger" {
		t.Errorf("%+v", s)
	}
	if n := rows(); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestASavepointCannotOpenAnEnforcedTable(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ledger(t, pool)
	protect(t, pool, "ledger", "job:x", fence.Enforce)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	tx := begin(t, pool, pgx.TxOptions{})
	exec(t, tx, `select set_config('pawl.lease', jsonb_build_object('job:x', $1::bigint)::text, true)`, a.Seq)
	exec(t, tx, `savepoint s`)
	exec(t, tx, `insert into ledger values (1, $1)`, a.Seq)
	exec(t, tx, `release savepoint s`)
	expire(t, pool, a)
	if _, granted := tryAcquire(t, pool, a.Lock, "b", time.Minute); granted {
		t.Error("granted while a write under the older token is open")
	}
}

func TestAPrefixProtectsAFamilyOfLocks(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ledger(t, pool)
	for _, c := range []struct {
		pattern, lock string
		pass          bool
	}{
		{"job:*", "job:x", true},
		{"job:*", "job:", true},
		{"job:*", "jobs", false},
		{"*", "anything", true},
		{"a_%*", "a_%b", true},
		{"a_%*", "abcd", false}, // no wildcard but the last *
		{`it's \ "*`, `it's \ "x`, true},
	} {
		protect(t, pool, "ledger", c.pattern, fence.Enforce)
		tok := acquire(t, pool, c.lock, "a", time.Minute)
		err := fence.Do(t.Context(), pool, tok, write(t.Context(), tok))
		if c.pass && err != nil {
			t.Errorf("%s under %s: %v", c.pattern, c.lock, err)
		}
		if !c.pass {
			wantErr(t, err, fence.ErrUnfenced)
		}
		exec(t, pool, `update pawl.locks set grant_id = null, expires_at = null`)
	}
}

func TestLogModeRecordsAndLetsPass(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	protect(t, pool, "ledger", "job:x", fence.Log)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	if err := fence.Do(t.Context(), pool, a, write(t.Context(), a)); err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, pool, `select count(*) from pawl.refusals`); n != 0 {
		t.Errorf("%d refusals of a holder", n)
	}
	if err := bare(t, pool, `update ledger set id = 7`); err != nil {
		t.Fatal(err)
	}
	// Neither a snapshot from before a takeover nor a row that is locked may stop a write in log mode.
	tx := begin(t, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	exec(t, tx, `select set_config('pawl.lease', jsonb_build_object('job:x', $1::bigint)::text, true)`, a.Seq)
	takeOver(t, pool, a)
	locker := begin(t, pool, pgx.TxOptions{})
	exec(t, locker, `select from pawl.locks for update`)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := write(ctx, a)(tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil || rows() != 2 {
		t.Errorf("commit: %v, %d rows", err, rows())
	}
	const record = `select lock = 'job:x' and token is null and target = 'public.ledger' and statement = 'UPDATE' and passed from pawl.refusals
		order by id limit 1`
	if !one[bool](t, pool, record) {
		t.Error("the record is wrong")
	}
	// What is refused after all of that is the first refusal: what passed isn't counted.
	exec(t, pool, `select pawl.refuse('job:x', 1, 'ledger', 'insert')`)
	if got := one[string](t, pool, `select string_agg(concat(nth, passed), ' ' order by id) from pawl.refusals`); got != "t 1f" {
		t.Errorf("recorded as %q", got)
	}
}

// In log mode a write under a token that isn't current lands; who did it is known.
func TestLogModeNamesTheOldHolder(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	protect(t, pool, "ledger", "job:x", fence.Log)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	b := takeOver(t, pool, a)
	tx := begin(t, pool, pgx.TxOptions{})
	exec(t, tx, `select set_config('pawl.lease', jsonb_build_object('job:x', $1::bigint)::text, true)`, a.Seq)
	if err := errors.Join(write(t.Context(), a)(tx), tx.Commit(t.Context())); err != nil || rows() != 1 {
		t.Fatalf("%v, %d rows", err, rows())
	}
	if !one[bool](t, pool, `select token = $1 and current = $2 and holder = 'a' and passed from pawl.refusals`, a.Seq, b.Seq) {
		t.Error("the record is wrong")
	}
}

func TestEveryPartitionIsProtected(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	exec(t, pool, `create schema "Odd ""Name"`)
	exec(t, pool, `create table public.entry (day date, part int, n int) partition by range (day)`)
	exec(t, pool, `create table public.entry_1 partition of public.entry for values from ('2026-01-01') to ('2026-02-01') partition by list (part)`)
	exec(t, pool, `create table "Odd ""Name"."Entry'1;" partition of public.entry_1 default`)
	protect(t, pool, "public.entry", "job:x", fence.Enforce)
	all := []string{"public.entry", "public.entry_1", `"Odd ""Name"."Entry'1;"`}
	for _, table := range all {
		wantErr(t, bare(t, pool, `insert into `+table+` values ('2026-01-05', 1, 1)`), fence.ErrUnfenced)
		wantErr(t, bare(t, pool, `truncate `+table), fence.ErrUnfenced)
	}
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	err := fence.Do(t.Context(), pool, tok, func(tx pgx.Tx) error {
		for _, table := range all {
			exec(t, tx, `insert into `+table+` values ('2026-01-05', 1, 1)`)
		}
		exec(t, tx, `truncate public.entry`)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// A later partition is open until Protect is called again.
	exec(t, pool, `create table public.entry_2 partition of public.entry for values from ('2026-02-01') to ('2026-03-01')`)
	if err := bare(t, pool, `insert into public.entry_2 values ('2026-02-05', 1, 1)`); err != nil {
		t.Fatal(err)
	}
	protect(t, pool, "public.entry", "job:x", fence.Enforce)
	wantErr(t, bare(t, pool, `insert into public.entry_2 values ('2026-02-05', 1, 1)`), fence.ErrUnfenced)
	if err := fence.Unprotect(t.Context(), pool, "public.entry"); err != nil {
		t.Fatal(err)
	}
	for _, table := range all {
		if err := bare(t, pool, `insert into `+table+` values ('2026-01-05', 1, 1)`); err != nil {
			t.Errorf("after Unprotect: %v", err)
		}
	}
}

func TestProtectAgainChangesLockAndModeAndProtectedTells(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ledger(t, pool)
	exec(t, pool, `create table public."Odd.Table" (id int)`)
	protect(t, pool, "ledger", "job:x", fence.Log)
	protect(t, pool, "public.ledger", `it's \ "🔒"*`, fence.Enforce)
	protect(t, pool, `"Odd.Table"`, "job:x", fence.Log)
	got, err := fence.Protected(t.Context(), pool)
	want := []fence.Protection{{`public."Odd.Table"`, "job:x", fence.Log}, {"public.ledger", `it's \ "🔒"*`, fence.Enforce}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Protected = %v, %v; want %v", got, err, want)
	}
	for _, table := range []string{"ledger", "ledger", `"Odd.Table"`} { // twice: removing nothing is no error
		if err := fence.Unprotect(t.Context(), pool, table); err != nil {
			t.Error(err)
		}
	}
	if got, err := fence.Protected(t.Context(), pool); err != nil || len(got) != 0 {
		t.Errorf("Protected = %v, %v", got, err)
	}
}

func TestProtectWaitsForABusyTableWithoutHoldingUpOthers(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ledger(t, pool)
	busy := begin(t, pool, pgx.TxOptions{})
	exec(t, busy, `insert into ledger values (1, 1)`)
	done := make(chan error, 1)
	go func() { done <- fence.Protect(t.Context(), pool, "ledger", "job:x", fence.Log) }()
	const waits = `select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like 'create or replace trigger%')`
	pgtest.Eventually(t, 5*time.Second, "the DDL waits", func() bool { return one[bool](t, pool, waits) })
	pgtest.Eventually(t, 5*time.Second, "the DDL lets others pass", func() bool { return !one[bool](t, pool, waits) })
	if err := bare(t, pool, `insert into ledger values (2, 2)`); err != nil {
		t.Error(err)
	}
	if err := busy.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestProtectSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ledger(t, pool)
	exec(t, pool, `create view public.v as select 1 as x`)
	for _, c := range []struct {
		table, lock string
		mode        fence.Mode
		want        string
	}{
		{"nosuch", "job:x", fence.Log, "fence: protect nosuch: there is no such table"},
		{"v", "job:x", fence.Log, "there is no such table (a view or foreign table can't be protected)"},
		{"ledger; drop table ledger", "job:x", fence.Log, "fence: protect ledger; drop table ledger: "},
		{"pawl.locks", "job:x", fence.Log, "pawl.locks is pawl's own"},
		{"ledger", "", fence.Log, `lock "" must be 1 to 255 bytes`},
		{"ledger", "job:x", "", `mode is ""; use "log" or "enforce"`},
	} {
		err := fence.Protect(t.Context(), pool, c.table, c.lock, c.mode)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Protect(%q, %q, %q) = %v, want %q", c.table, c.lock, c.mode, err, c.want)
		}
	}
}
