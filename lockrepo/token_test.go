package lockrepo

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
)

// server is a database whose start and clock are moved by the test, and that can forget like a standby that was promoted.
type server struct {
	t    *testing.T
	pool *pgxpool.Pool
	r    *Repo
}

func newServer(t *testing.T) server {
	t.Helper()
	s := server{t: t, pool: pgtest.New(t)}
	s.r = newRepo(t, s.pool, "a")
	s.do(
		`create table moved as select incarnation, 0::bigint as us from pawl.clock`,
		`create or replace function pawl.incarnation() returns bigint language sql stable as 'select incarnation from public.moved'`,
		`create or replace function pawl.now_us() returns bigint language sql volatile as
		  'select (extract(epoch from clock_timestamp()) * 1000000)::bigint + us from public.moved'`,
		`create table kept_locks as table pawl.locks`, `create table kept_clock as table pawl.clock`,
	)
	return s
}

func (s server) do(statements ...string) {
	s.t.Helper()
	for _, sql := range statements {
		if _, err := s.pool.Exec(s.t.Context(), sql); err != nil {
			s.t.Fatalf("%s: %v", sql, err)
		}
	}
}

func (s server) clock(ahead time.Duration) {
	s.t.Helper()
	if _, err := s.pool.Exec(s.t.Context(), `update moved set us = $1`, ahead.Microseconds()); err != nil {
		s.t.Fatal(err)
	}
}

func (s server) restart() { s.t.Helper(); s.do(`update moved set incarnation = incarnation + 1`) }

// replicate is up to when a standby has seen everything.
func (s server) replicate() {
	s.t.Helper()
	s.do(`truncate kept_locks, kept_clock`, `insert into kept_locks table pawl.locks`, `insert into kept_clock table pawl.clock`)
}

// promote loses what came after, and goes on with another clock.
func (s server) promote(ahead time.Duration) {
	s.t.Helper()
	s.do(
		`alter table pawl.locks disable trigger user`, `delete from pawl.locks`, `alter table pawl.locks enable trigger user`,
		`insert into pawl.locks table kept_locks`, `delete from pawl.tenures`,
		`update pawl.clock c set incarnation = k.incarnation, since = k.since, floor = k.floor, raised = k.raised from kept_clock k`,
	)
	s.restart()
	s.clock(ahead)
}

// next is the token of one more lease, which is released.
func (s server) next(lock string) int64 {
	s.t.Helper()
	l := mustAcquire(s.t, s.r, lock)
	if err := s.r.Release(s.t.Context(), l); err != nil {
		s.t.Fatal(err)
	}
	return l.Token.Seq
}

func TestTokensGrowWhateverIsForgottenAndWhereverTheClockGoes(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(s server) (last int64){
		"a birth is lost, and the promoted clock is 55 s behind": func(s server) int64 {
			last := s.next("x")
			s.promote(-55 * time.Second)
			return last
		},
		"a birth soon after a restart is lost, and the promoted clock is 50 s behind": func(s server) int64 {
			s.restart()
			s.next("another")
			s.replicate()
			last := s.next("x")
			s.promote(-50 * time.Second)
			return last
		},
		"the clock was an hour ahead, and two grants are lost": func(s server) int64 {
			s.clock(time.Hour)
			s.next("x")
			s.clock(0)
			s.replicate()
			s.next("x")
			last := s.next("x")
			s.promote(0)
			return last
		},
		"the row is pruned, and the clock goes back an hour": func(s server) int64 {
			last := s.next("x")
			if n := run(s.t, s.pool, `select pawl.prune('0', 100)::text`); n != "1" {
				s.t.Fatalf("%s rows are pruned", n)
			}
			s.clock(-time.Hour)
			return last
		},
		"the row is deleted by hand, and the clock goes back an hour": func(s server) int64 {
			last := s.next("x")
			s.do(`delete from pawl.locks`)
			s.clock(-time.Hour)
			return last
		},
		"the clock goes back an hour": func(s server) int64 {
			last := s.next("x")
			s.clock(-time.Hour)
			return last
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			last := lose(s)
			if next := s.next("x"); next <= last {
				t.Errorf("token %d after %d", next, last)
			}
		})
	}
}

// A lease, an open birth and a row that somebody has locked are no idle locks.
func TestPruningLeavesLeasesAlone(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	l := mustAcquire(t, s.r, "held")
	s.next("locked")
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, tx, `select name from pawl.locks where name = 'locked' for update`)
	if n := run(t, s.pool, `select pawl.prune('0', 100)::text`); n != "0" {
		t.Errorf("%s rows are pruned", n)
	}
	if _, err := s.r.Renew(t.Context(), l); err != nil {
		t.Error(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}
