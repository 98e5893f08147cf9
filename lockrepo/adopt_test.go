package lockrepo

import (
	"errors"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"pawl/internal/pgtest"
)

// Each loses grants in a way that a floor of a fixed height above the clock doesn't survive.
func TestTokensGrowOverSeveralRestartsAndAFailoverThatLosesSomeOfThem(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(s server) (last int64){
		"two restarts, 10 s apart, that the standby hasn't seen": func(s server) int64 {
			s.restart()
			s.next("another")
			s.do(`update pawl.clock set since = since - interval '10 s', floor = floor - 10000000, raised = raised - 10000000`)
			s.restart()
			last := s.next("x")
			s.promote(2 * time.Second)
			return last
		},
		"one that it has seen and one 119 s later that it hasn't": func(s server) int64 {
			s.restart()
			s.next("another")
			s.replicate()
			s.do(`update pawl.clock set since = since - interval '119 s', floor = floor - 119000000, raised = raised - 119000000`)
			s.restart()
			last := s.next("x")
			s.do(`update kept_clock set since = since - interval '121 s', floor = floor - 121000000, raised = raised - 121000000`)
			s.promote(0)
			return last
		},
		"two that it has seen, and its clock is 50 s behind": func(s server) int64 {
			s.restart()
			s.next("another")
			s.restart()
			s.next("another")
			s.replicate()
			last := s.next("x")
			s.promote(-50 * time.Second)
			return last
		},
		"ten that it has seen, and its clock is 59 s behind": func(s server) int64 {
			for range 10 {
				s.restart()
				s.next("another")
			}
			s.replicate()
			s.next("x")
			last := s.next("x")
			s.promote(-59 * time.Second)
			return last
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			last := lose(s)
			if next := s.next("x"); next <= last {
				t.Errorf("token %d after %d (%d s)", next, last, (next-last)/1e6)
			}
		})
	}
}

// A crash of one backend restarts the others, and what nobody has flushed is lost; the incarnation stays.
func TestNoGrantIsLostByACrashOfOneBackend(t *testing.T) {
	t.Parallel()
	server := pgtest.Own(t)
	pool := pgtest.Open(t, server.URL())
	crashed(t, server, pool) // tokens run ahead of the clock
	r, g, locks := newRepo(t, pool, "a"), newLedger(), hundred()
	g.take(t, r, "after a restart", locks[:1])
	const writerSQL = "select coalesce(max(pid), 0)::text from pg_stat_activity where backend_type = 'walwriter'"
	writer := 0
	pgtest.Eventually(t, 10*time.Second, "the server's log has its writer", func() bool { // it comes a moment after the first session
		writer, _ = strconv.Atoi(run(t, pool, writerSQL))
		return writer > 0
	})
	if err := syscall.Kill(writer, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	hasty := pgtest.Open(t, server.URL()+"&options=-c%20synchronous_commit%3Doff")
	g.take(t, newRepo(t, hasty, "hasty"), "at birth", locks[1:])
	if err := syscall.Kill(writer, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, 20*time.Second, "the server has recovered", func() bool {
		var pid *string
		return pool.QueryRow(t.Context(), writerSQL).Scan(&pid) == nil && pid != nil && *pid != strconv.Itoa(writer)
	})
	run(t, pool, "update pawl.locks set expires_at = clock_timestamp() - interval '1 s'")
	g.take(t, r, "after a crash of one backend", locks)
}

func TestAGrantIDThatServesTwoLocksBlocksNeither(t *testing.T) {
	t.Parallel()
	r := newRepo(t, pgtest.New(t), "a")
	grant := uuid.New()
	var leases []Lease
	for _, lock := range []string{"x", "y"} {
		l, err := r.AcquireRequest(t.Context(), Request{Lock: lock, Grant: grant})
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
	}
	for _, l := range leases {
		if err := r.Release(t.Context(), l); err != nil {
			t.Error(err)
		}
		if _, err := r.AcquireRequest(t.Context(), Request{Lock: l.Token.Lock, Grant: grant}); !errors.Is(err, ErrEnded) {
			t.Errorf("asked again for an ended grant of %s: %v, want ErrEnded", l.Token, err)
		}
		mustAcquire(t, r, l.Token.Lock)
	}
}
