package settlement

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
)

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// one returns the only column of a statement's only row.
func one[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) T {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func schemaExists(t *testing.T, pool *pgxpool.Pool, name string) bool {
	t.Helper()
	return one[bool](t, pool, `select exists (select from pg_namespace where nspname = $1)`, name)
}

func TestASchemaThatIsNotTheDemosIsLeftAlone(t *testing.T) {
	t.Parallel()
	pool, s := pgtest.New(t), New(Config{Schema: "accounts"})
	exec(t, pool, `create schema accounts; create table accounts.payments (id int); insert into accounts.payments values (1)`)
	for what, call := range map[string]func() error{
		"Create":   func() error { return s.Create(t.Context(), pool) },
		"Drop":     func() error { return s.Drop(t.Context(), pool) },
		"Generate": func() error { return s.Generate(t.Context(), pool, Input{Payments: 10}) },
	} {
		if err := call(); !errors.Is(err, ErrNotMarked) {
			t.Errorf("%s: %v, want ErrNotMarked", what, err)
		}
	}
	if got := one[int](t, pool, `select count(*)::int from pg_class where relnamespace = 'accounts'::regnamespace`); got != 1 {
		t.Errorf("the schema has %d relations, want its own one", got)
	}
	if got := one[int](t, pool, `select count(*)::int from accounts.payments`); got != 1 {
		t.Errorf("its table has %d rows, want 1", got)
	}
}

func TestCreateMayRunTwiceAndInSeveralProcessesAtOnce(t *testing.T) {
	t.Parallel()
	pool, s := pgtest.New(t), New(Config{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := s.Create(t.Context(), pool); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := s.Drop(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if schemaExists(t, pool, "pawl_demo") {
		t.Error("the schema is still there after Drop")
	}
	if err := s.Drop(t.Context(), pool); err != nil {
		t.Errorf("a second Drop: %v", err)
	}
}

func TestASchemasNameIsOnlyAName(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	for _, name := range []string{`a"; drop schema pawl cascade; --`, `Größe $1 $schema 'x'`} {
		s := New(Config{Schema: name})
		if err := s.Create(t.Context(), pool); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := s.Generate(t.Context(), pool, Input{Payments: 30, Merchants: 3}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		settleAll(t, s, pool, newToken(1))
		if got := totals(t, s, pool); !got.OK() || got.Payments != 30 {
			t.Errorf("%s: %+v", name, got)
		}
		if err := s.Drop(t.Context(), pool); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if !schemaExists(t, pool, "pawl") {
		t.Error("the schema pawl is gone")
	}
	long := New(Config{Schema: strings.Repeat("x", 64)})
	if err := long.Create(t.Context(), pool); err == nil || !strings.Contains(err.Error(), "63 bytes") {
		t.Errorf("a name that Postgres would cut: %v", err)
	}
}

func TestGenerateNeedsTables(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	err := New(Config{}).Generate(t.Context(), pool, Input{Payments: 10})
	if err == nil || !strings.Contains(err.Error(), "call Create first") {
		t.Errorf("Generate without tables: %v", err)
	}
}

func totals(t *testing.T, s *Settlement, pool *pgxpool.Pool) Totals {
	t.Helper()
	got, err := s.Totals(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// settleAll settles every day that has payments, under one token, without a guard.
func settleAll(t *testing.T, s *Settlement, pool *pgxpool.Pool, r *unguarded) {
	t.Helper()
	r.pool = pool
	for _, d := range days(t, s, pool) {
		r.saved = nil
		if err := s.settle(t.Context(), r, d); err != nil {
			t.Fatal(err)
		}
	}
}

func days(t *testing.T, s *Settlement, pool *pgxpool.Pool) (all []day) {
	t.Helper()
	rows, err := pool.Query(t.Context(), s.sql(`select distinct date_trunc('day', at, 'UTC') from $schema.payments order by 1`))
	if err != nil {
		t.Fatal(err)
	}
	starts, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range starts {
		all = append(all, aDay(from))
	}
	return all
}
