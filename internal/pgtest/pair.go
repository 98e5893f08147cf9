package pgtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgdev"
	"pawl/migrations"
)

// Own starts a server that belongs to the test alone, with pawl's schema in
// its database postgres. A commit is safe from a crash of the server.
func Own(t testing.TB) *pgdev.Server {
	t.Helper()
	s, err := pgdev.Start(t.Context(), pgdev.Options{Settings: map[string]string{
		"synchronous_commit": "on", "wal_retrieve_retry_interval": "50ms", "wal_keep_size": "256MB",
	}})
	mine(t, s, err)
	pool := Open(t, s.URL())
	if _, err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return s
}

// Backup starts a server on a base backup of s. It knows nothing of what s
// does from then on.
func Backup(t testing.TB, s *pgdev.Server) *pgdev.Server {
	t.Helper()
	c, err := s.Copy(t.Context())
	return mine(t, c, err)
}

func mine(t testing.TB, s *pgdev.Server, err error) *pgdev.Server {
	t.Helper()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return s
}

// Pair is a server with pawl's schema and a standby that streams from it,
// both the test's own.
type Pair struct{ Primary, Standby *pgdev.Server }

// NewPair starts both.
func NewPair(t testing.TB) *Pair {
	t.Helper()
	primary := Own(t)
	standby, err := primary.Standby(t.Context())
	return &Pair{primary, mine(t, standby, err)}
}

// CutOff lets the standby catch up with what is in the primary's log now and
// parts it from the primary: what is committed from now on is lost at a
// FailOver. A release that nothing has followed may not be in the log yet.
func (p *Pair) CutOff(t testing.TB) {
	t.Helper()
	primary, standby := Open(t, p.Primary.URL()), Open(t, p.Standby.URL())
	upTo := one[string](t, primary, "select pg_current_wal_flush_lsn()::text")
	Eventually(t, 20*time.Second, "the standby has caught up", func() bool {
		return one[bool](t, standby, "select coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)", upTo)
	})
	if _, err := standby.Exec(t.Context(), "alter system set primary_conninfo = ''"); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	one[bool](t, standby, "select pg_reload_conf()")
	Eventually(t, 20*time.Second, "the standby streams no more", func() bool {
		return !one[bool](t, standby, "select exists (select from pg_stat_wal_receiver)") &&
			!one[bool](t, primary, "select exists (select from pg_stat_replication)")
	})
}

// FailOver stops the primary as a crash does and promotes the standby.
func (p *Pair) FailOver(t testing.TB) {
	t.Helper()
	if err := p.Primary.StopImmediate(); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if err := p.Standby.Promote(t.Context()); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
}

// ClockAhead lets the server that pool leads to issue tokens as one would
// whose clock is ahead by d.
func ClockAhead(t testing.TB, pool *pgxpool.Pool, d time.Duration) {
	t.Helper()
	_, err := pool.Exec(t.Context(), fmt.Sprintf(`create or replace function pawl.now_us() returns bigint language sql volatile as
		$$ select (extract(epoch from clock_timestamp()) * 1000000)::bigint + %d $$`, d.Microseconds()))
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
}

func one[T any](t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (v T) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("pgtest: %s: %v", sql, err)
	}
	return v
}
