package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/migrations"
)

var everyMigration = []string{"00001_pawl", "00002_river", "00003_functions", "00004_runs", "00005_api", "00006_schedules", "00007_alerts", "00008_outputs", "00009_admin", "00010_effects", "00012_shards"}

// empty is a pool on an empty database.
func empty(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return pgtest.Open(t, pgtest.Empty(t))
}

func up(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	applied, err := migrations.Up(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func value[T any](t *testing.T, pool *pgxpool.Pool, sql string) T {
	t.Helper()
	var v T
	if err := pool.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func execSQL(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestUpAppliesEverythingOnce(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	if got := up(t, pool); !reflect.DeepEqual(got, everyMigration) {
		t.Errorf("first Up applied %v, want %v", got, everyMigration)
	}
	if got := up(t, pool); len(got) != 0 {
		t.Errorf("second Up applied %v", got)
	}
	const strays = `select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'public'`
	if n := value[int](t, pool, strays); n != 0 {
		t.Errorf("%d tables, indexes or sequences outside the schema pawl", n)
	}
}

func TestTenReplicasStartAtOnceAndOneMigrates(t *testing.T) {
	t.Parallel()
	replicas(t, pgtest.Empty(t))
}

func TestTenReplicasStartAtOnceBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	replicas(t, pgtest.Pooler(t, pgtest.Empty(t)))
}

// replicas calls Up on ten pools of one connection each.
func replicas(t *testing.T, url string) {
	t.Helper()
	const n = 10
	type answer struct {
		applied []string
		err     error
	}
	answers := make(chan answer, n)
	for range n {
		pool := pgtest.Open(t, url+"&pool_max_conns=1")
		go func() {
			applied, err := migrations.Up(t.Context(), pool)
			answers <- answer{applied, err}
		}()
	}
	migrated := 0
	for range n {
		a := <-answers
		if a.err != nil {
			t.Errorf("Up: %v", a.err)
		}
		if len(a.applied) > 0 {
			migrated++
		}
	}
	if migrated != 1 {
		t.Errorf("%d replicas migrated, want 1", migrated)
	}
	pool := pgtest.Open(t, url)
	if err := migrations.Check(t.Context(), pool, migrations.Binary); err != nil {
		t.Error(err)
	}
	if n := value[int](t, pool, `select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`); n != 0 {
		t.Errorf("%d advisory locks are left", n)
	}
}

func TestUpNeedsNoConnectionOfABusyPool(t *testing.T) {
	t.Parallel()
	pool := pgtest.Open(t, pgtest.Empty(t))
	for range pool.Config().MaxConns - 1 {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	if got := up(t, pool); len(got) != len(everyMigration) {
		t.Errorf("applied %v", got)
	}
}

func TestStatusTellsWhatIsAppliedAndChangesNothing(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	before := status(t, pool)
	if n := value[int](t, pool, `select count(*) from pg_namespace where nspname = 'pawl'`); n != 0 {
		t.Error("Status made the schema")
	}
	up(t, pool)
	execSQL(t, pool, `insert into pawl.goose_db_version (version_id, is_applied) values (99, true)`)
	after := status(t, pool)
	now := value[time.Time](t, pool, `select clock_timestamp()`)
	for i, name := range everyMigration {
		if before[i].Name != name || before[i].AppliedAt != nil {
			t.Errorf("before: %+v", before[i])
		}
		if at := after[i].AppliedAt; after[i].Name != name || at == nil || now.Sub(*at).Abs() > time.Minute {
			t.Errorf("after: %+v", after[i])
		}
	}
	if last := after[len(after)-1]; len(after) != len(before)+1 || last.Version != 99 || last.AppliedAt == nil {
		t.Errorf("a newer binary's migration is shown as %+v", last)
	}
}

func status(t *testing.T, pool *pgxpool.Pool) []migrations.Migration {
	t.Helper()
	list, err := migrations.Status(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestAnOlderBinaryLeavesANewerSchemaAlone(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	execSQL(t, pool, `insert into pawl.goose_db_version (version_id, is_applied) values (99, true)`)
	execSQL(t, pool, `update pawl.schema_info set version = 7`)
	if got := up(t, pool); len(got) != 0 {
		t.Errorf("applied %v", got)
	}
	if err := migrations.Check(t.Context(), pool, migrations.Binary); err != nil {
		t.Error(err)
	}
}

func TestDownTakesEverythingAndUpComesBack(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	for round := range 2 {
		up(t, pool)
		if err := migrations.Down(t.Context(), pool); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		const left = `select coalesce(string_agg(n.nspname || '.' || c.relname, ' '), '') from pg_class c
		  join pg_namespace n on n.oid = c.relnamespace where n.nspname !~ '^pg_|^information_schema$'`
		if got := value[string](t, pool, left); got != "" {
			t.Errorf("round %d: Down left %s", round, got)
		}
	}
	if err := migrations.Down(t.Context(), pool); err != nil {
		t.Errorf("Down where nothing is: %v", err)
	}
}

func TestAChangeGivesWayToThoseWhoUseTheTable(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	user, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := user.Exec(t.Context(), `lock table pawl.locks in access share mode`); err != nil {
		t.Fatal(err)
	}
	down := make(chan error, 1)
	go func() { down <- migrations.Down(t.Context(), pool) }()
	waiting := func() bool { return value[bool](t, pool, changeWaits) }
	pgtest.Eventually(t, 10*time.Second, "Down waits for the table", waiting)
	pgtest.Eventually(t, 10*time.Second, "Down gives way", func() bool { return !waiting() })
	pgtest.Eventually(t, 10*time.Second, "Down tries again", waiting)
	if err := user.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

func TestUpEndsWithItsContextWhileAnotherMigrates(t *testing.T) {
	t.Parallel()
	pool := empty(t)
	other, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := other.Exec(t.Context(), `select pg_advisory_xact_lock($1)`, int64(migrations.Turn)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := migrations.Up(ctx, pool); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Up says %v", err)
	}
}

func TestCheckTellsAbsentBehindAndTooOldApart(t *testing.T) {
	t.Parallel()
	var absent *migrations.NotMigratedError
	if err := migrations.Check(t.Context(), empty(t), migrations.Binary); !errors.As(err, &absent) || len(absent.Missing) != len(everyMigration) {
		t.Errorf("empty database: %v", err)
	}
	pool := pgtest.New(t)
	if err := migrations.Check(t.Context(), pool, migrations.Binary); err != nil {
		t.Errorf("current: %v", err)
	}
	var behind *migrations.NotMigratedError
	if err := migrations.Check(t.Context(), pool, migrations.Binary+1); !errors.As(err, &behind) {
		t.Errorf("newer binary: %v", err)
	}
	execSQL(t, pool, `update pawl.schema_info set version = 5, min_binary = 4`)
	var old *migrations.TooOldError
	err := migrations.Check(t.Context(), pool, migrations.Binary)
	if !errors.As(err, &old) || *old != (migrations.TooOldError{Binary: migrations.Binary, Needed: 4}) {
		t.Errorf("older binary: %v", err)
	}
	execSQL(t, pool, `delete from pawl.goose_db_version where version_id = 3`)
	if err := migrations.Check(t.Context(), pool, 4); !errors.As(err, &behind) || fmt.Sprint(behind.Missing) != "[00003_functions]" {
		t.Errorf("half migrated: %v", err)
	}
}
