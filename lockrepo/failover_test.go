package lockrepo

import (
	"errors"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgdev"
	"pawl/internal/pgtest"
)

// crashed stops a server at once and brings it up again.
func crashed(t *testing.T, s *pgdev.Server, pool *pgxpool.Pool) {
	t.Helper()
	if err := s.StopImmediate(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool.Reset()
}

// hasty lets do commit on sessions that don't wait for the server's log, and
// crashes the server before anything of it is written there by somebody else.
func hasty(t *testing.T, s *pgdev.Server, pool *pgxpool.Pool, do func(*pgxpool.Pool)) {
	t.Helper()
	writer := 0
	pgtest.Eventually(t, 10*time.Second, "the server's log has its writer", func() bool { // it comes a moment after the first session
		writer, _ = strconv.Atoi(run(t, pool, "select coalesce(max(pid), 0)::text from pg_stat_activity where backend_type = 'walwriter'"))
		return writer > 0
	})
	signal := func(pid int, sig syscall.Signal) {
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
	}
	signal(writer, syscall.SIGSTOP)
	do(pgtest.Open(t, s.URL()+"&options=-c%20synchronous_commit%3Doff"))
	signal(s.Pid(), syscall.SIGKILL)
	signal(writer, syscall.SIGKILL)
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool.Reset()
}

func TestTheNextTokenIsLargerAfterCrashesOfTheServer(t *testing.T) {
	t.Parallel()
	server := pgtest.Own(t)
	pool := pgtest.Open(t, server.URL())
	r, g, locks := newRepo(t, pool, "a"), newLedger(), hundred()
	g.take(t, r, "at birth", locks[:80])
	crashed(t, server, pool)
	run(t, pool, "update pawl.locks set expires_at = clock_timestamp() - interval '1 s'")
	first := g.take(t, r, "after a crash", locks[:80])
	if d := ahead(t, pool, first); d < 50*time.Second {
		t.Errorf("the first tokens after a crash are %s ahead of the clock, want 60 s less what has passed", d)
	}
	g.release(t, r, locks[:40])
	run(t, pool, "delete from pawl.locks where name between 'lock-20' and 'lock-59'") // free and held ones
	hasty(t, server, pool, func(pool *pgxpool.Pool) {
		g.take(t, newRepo(t, pool, "hasty"), "just before a crash", slices.Concat(locks[:60], locks[80:]))
	})
	if n := run(t, pool, "select count(*)::text from pawl.locks where holder = 'hasty'"); n != "80" {
		t.Errorf("%s of the 80 last grants have outlived the crash, want all, though the session doesn't wait for the log", n)
	}
	run(t, pool, "update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where grant_id is not null")
	second := g.take(t, r, "after a second crash", locks)
	if second-first < 1e6 {
		t.Errorf("the tokens after a second crash begin %d µs after those of the first, want a second at least", second-first)
	}
}

func TestTheNextTokenIsLargerInARestoredBaseBackup(t *testing.T) {
	t.Parallel()
	server := pgtest.Own(t)
	pool := pgtest.Open(t, server.URL())
	r, g, locks := newRepo(t, pool, "a"), newLedger(), hundred()
	g.take(t, r, "at birth", locks[:60])
	g.release(t, r, locks[:20])
	run(t, pool, "delete from pawl.locks where name between 'lock-10' and 'lock-19'")
	backup := pgtest.Backup(t, server)
	crashed(t, server, pool) // of which the backup knows nothing
	g.release(t, r, locks[20:60])
	g.take(t, r, "after the backup", locks)
	run(t, pool, "delete from pawl.locks where name between 'lock-40' and 'lock-49'")
	g.take(t, r, "after the backup and a deletion", locks[40:50])
	if err := server.StopImmediate(); err != nil {
		t.Fatal(err)
	}
	if err := backup.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	restored := pgtest.Open(t, backup.URL())
	run(t, restored, "update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where grant_id is not null")
	g.take(t, newRepo(t, restored, "b"), "in the restored backup", locks)
}

// The first of each fifth of the locks, by what happens to it before the
// standby is cut off and in the time that it loses.
const (
	firstHeld = iota * 20
	firstRegranted
	firstDeletedBefore
	firstDeletedLate
	firstBorn
)

func TestTheNextTokenIsLargerAfterAFailoverThatLostTheLastSecond(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		restartBefore, restartLost bool
		clock                      time.Duration // how far the lost tokens' clock was ahead of the standby's
		least                      time.Duration // how far the first tokens must be ahead of the clock
	}{
		"of clocks that agree":               {least: 50 * time.Second},
		"to a clock that is 59 s behind":     {clock: 59 * time.Second, least: 50 * time.Second},
		"soon after a restart":               {restartBefore: true, clock: 59 * time.Second, least: 50 * time.Second},
		"and with it a restart and adoption": {restartLost: true, least: 50 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair := pgtest.NewPair(t)
			pool := pgtest.Open(t, pair.Primary.URL())
			r, g, locks := newRepo(t, pool, "a"), newLedger(), hundred()
			g.take(t, r, "at birth", locks[:firstBorn])
			if c.restartBefore {
				crashed(t, pair.Primary, pool)
			}
			g.release(t, r, locks[firstRegranted:firstBorn])
			g.take(t, r, "again", locks[firstRegranted:firstBorn])
			g.release(t, r, locks[firstRegranted:firstDeletedLate])
			run(t, pool, "delete from pawl.locks where name between 'lock-40' and 'lock-59'")
			pair.CutOff(t)
			if c.restartLost {
				crashed(t, pair.Primary, pool)
			}
			pgtest.ClockAhead(t, pool, c.clock)
			g.release(t, r, locks[firstDeletedLate:firstBorn])
			run(t, pool, "delete from pawl.locks where name between 'lock-60' and 'lock-79'")
			for range 3 {
				g.take(t, r, "in the second that is lost", locks[firstRegranted:])
				g.release(t, r, locks[firstRegranted:])
			}
			g.take(t, r, "last", locks[firstRegranted:])
			pair.FailOver(t)
			g.afterFailover(t, pgtest.Open(t, pair.Standby.URL()), locks, c.least)
		})
	}
}

func (g *ledger) afterFailover(t *testing.T, pool *pgxpool.Pool, locks []string, least time.Duration) {
	t.Helper()
	r := newRepo(t, pool, "b")
	if n := run(t, pool, "select count(*)::text from pawl.locks where name >= 'lock-80'"); n != "0" {
		t.Fatalf("the standby knows %s locks that were born in the second that it was to lose", n)
	}
	keeper, lost := g.lease[locks[firstHeld]], g.lease[locks[firstBorn]]
	if _, err := r.Renew(t.Context(), keeper); err != nil {
		t.Errorf("who held a lock over the failover lost it: %v", err)
	}
	if _, err := r.Acquire(t.Context(), locks[firstHeld], time.Hour); !errors.Is(err, ErrHeld) {
		t.Errorf("Acquire of a lock that is held over the failover = %v", err)
	}
	if _, err := r.Renew(t.Context(), lost); !errors.Is(err, ErrNotHeld) {
		t.Errorf("renewal of a grant that was lost = %v", err)
	}
	run(t, pool, "update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where grant_id is not null")
	if d := ahead(t, pool, g.take(t, r, "after the failover", locks)); d < least {
		t.Errorf("the first tokens after the failover are only %s ahead of the clock, want %s", d, least)
	}
	if err := fence.Do(t.Context(), pool, lost.Token, nil); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a transaction under a token that was lost = %v, want ErrStale", err)
	}
}

// The assumption about clocks is needed, and the test's list would show it.
func TestAClockFurtherBehindThanAssumedIssuesTokensTwice(t *testing.T) {
	t.Parallel()
	pair := pgtest.NewPair(t)
	pool := pgtest.Open(t, pair.Primary.URL())
	pair.CutOff(t)
	pgtest.ClockAhead(t, pool, 90*time.Second)
	before := mustAcquire(t, newRepo(t, pool, "a"), "x")
	pair.FailOver(t)
	after := mustAcquire(t, newRepo(t, pgtest.Open(t, pair.Standby.URL()), "b"), "x")
	if after.Token.Seq > before.Token.Seq {
		t.Errorf("token %s after %s though the clock is 90 s behind: docs/protocol.md assumes too much", after.Token, before.Token)
	}
}
