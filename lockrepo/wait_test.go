package lockrepo

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
)

// never lets a waiter ask of its own accord within a test.
func never() time.Duration { return time.Hour }

type waited struct {
	l   Lease
	err error
	at  time.Time
}

// waitFor begins to wait for lock x.
func waitFor(t *testing.T, r *Repo, holder string) <-chan waited {
	t.Helper()
	c := make(chan waited, 1)
	ctx := t.Context()
	go func() {
		l, err := r.AcquireWait(ctx, Request{Lock: "x", Holder: holder, TTL: time.Minute}, time.Hour)
		c <- waited{l, err, time.Now()}
	}()
	return c
}

const (
	listening = `select count(*) from pg_stat_activity where datname = current_database() and application_name = 'pawl waiting' and query = 'listen pawl_released' and state = 'idle'`
	rows      = `select count(*) from pawl.waiters`
)

func counts(t *testing.T, pool *pgxpool.Pool, sql, want, what string) {
	t.Helper()
	pgtest.Eventually(t, 10*time.Second, what, func() bool { return run(t, pool, `select (`+sql+`)::text`) == want })
}

func granted(t *testing.T, c <-chan waited) waited {
	t.Helper()
	select {
	case w := <-c:
		if w.err != nil {
			t.Fatal(w.err)
		}
		return w
	case <-time.After(20 * time.Second):
		t.Fatal("a waiter was not woken")
	}
	panic("unreachable")
}

// asleep begins to wait for lock x, and returns when only a notification can wake the waiter: it has been told that one
// listens now, and was turned away after that.
func asleep(t *testing.T, r *Repo, pool *pgxpool.Pool) <-chan waited {
	t.Helper()
	var turnedAway atomic.Int32
	r.waits.poll = func() time.Duration { turnedAway.Add(1); return never() }
	c := waitFor(t, r, "w")
	pgtest.Eventually(t, 10*time.Second, "the waiter was turned away twice", func() bool { return turnedAway.Load() == 2 })
	counts(t, pool, rows, "1", "the waiter is written down")
	counts(t, pool, listening, "1", "a connection listens")
	return c
}

func TestAReleaseWakesWhoWaits(t *testing.T) {
	t.Parallel()
	for how, release := range map[string]func(t *testing.T, r *Repo, l Lease) error{
		"release": func(t *testing.T, r *Repo, l Lease) error {
			t.Helper()
			return r.Release(t.Context(), l)
		},
		"release by name": func(t *testing.T, r *Repo, l Lease) error {
			t.Helper()
			return r.ReleaseAs(t.Context(), As{Lock: "x", Holder: l.Holder})
		},
		"force": func(t *testing.T, r *Repo, l Lease) error {
			t.Helper()
			pgtest.Force(t, r.cfg.Pool, "x", l.Token.Seq, "a test of force")
			return nil
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			holder, r := newRepo(t, pool, "holder"), newRepo(t, pool, "r")
			l := mustAcquire(t, holder, "x")
			c := asleep(t, r, pool)
			if err := release(t, holder, l); err != nil {
				t.Fatal(err)
			}
			done := time.Now()
			w := granted(t, c)
			if d := w.at.Sub(done); d > 200*time.Millisecond {
				t.Errorf("granted %v after the release", d)
			}
			if w.l.Token.Seq <= l.Token.Seq || w.l.Holder != "w" {
				t.Errorf("granted %+v after %+v", w.l, l)
			}
			counts(t, pool, rows, "0", "its row is gone")
			counts(t, pool, listening, "0", "nobody listens any more")
		})
	}
}

func TestEveryWaiterHasItsTurnAndOneConnectionListens(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	holder, r := newRepo(t, pool, "holder"), newRepo(t, pool, "r")
	r.waits.poll = never
	l := mustAcquire(t, holder, "x")
	var all []<-chan waited
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, waitFor(t, r, name))
	}
	counts(t, pool, rows, "3", "the waiters are written down")
	counts(t, pool, listening, "1", "one connection listens for all")
	last := l.Token.Seq
	for n := len(all); n > 0; n-- {
		if err := holder.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		var w waited
		select {
		case w = <-all[0]:
		case w = <-all[1]:
		case w = <-all[2]:
		case <-time.After(20 * time.Second):
			t.Fatalf("nobody was woken, %d wait", n)
		}
		if w.err != nil || w.l.Token.Seq <= last {
			t.Fatalf("%+v, %v, after token %d", w.l, w.err, last)
		}
		l, last = w.l, w.l.Token.Seq
	}
}

func TestAWaiterAsksAgainWhenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	holder, r := newRepo(t, pool, "holder"), newRepo(t, pool, "r")
	r.waits.poll = never
	l, err := holder.Acquire(t.Context(), "x", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	w := granted(t, waitFor(t, r, "w"))
	if late := w.l.AcquiredAt.Sub(l.ExpiresAt); late < 0 || late > 500*time.Millisecond {
		t.Errorf("granted %v after the lease's end", late)
	}
}

// Behind a pooler nobody can listen.
func TestBehindAPoolerAWaiterOnlyAsks(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := pgtest.Open(t, url)
	holder, r := newRepo(t, pool, "holder"), newRepo(t, pgtest.Open(t, pgtest.Pooler(t, url)), "r")
	r.waits.poll = func() time.Duration { return 20 * time.Millisecond }
	l := mustAcquire(t, holder, "x")
	c := waitFor(t, r, "w")
	counts(t, pool, rows, "1", "the waiter is written down")
	if err := holder.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	done := time.Now()
	if d := granted(t, c).at.Sub(done); d > 500*time.Millisecond {
		t.Errorf("granted %v after the release", d)
	}
	if got := run(t, pool, `select count(*)::text from pg_stat_activity where datname = current_database() and query ilike 'listen%'`); got != "0" {
		t.Errorf("%s server connections listen", got)
	}
}

func TestAWaitEndsWithTheLastRefusal(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "r")
	l := mustAcquire(t, r, "x")
	for _, atMost := range []time.Duration{-1, 0, 100 * time.Millisecond} {
		start := time.Now()
		_, err := r.AcquireWait(t.Context(), Request{Lock: "x", Holder: "w"}, atMost)
		var held *HeldError
		if !errors.As(err, &held) || held.Token != l.Token.Seq {
			t.Errorf("%v: %v", atMost, err)
		}
		if d := time.Since(start); d < atMost || d > atMost+5*time.Second {
			t.Errorf("%v: after %v", atMost, d)
		}
	}
	counts(t, pool, rows, "0", "no row is left")
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "r")
	mustAcquire(t, r, "x")
	ctx, cancel := context.WithCancelCause(t.Context())
	turnedAway := make(chan struct{}, 9)
	r.waits.poll = func() time.Duration { turnedAway <- struct{}{}; return never() }
	c := make(chan error, 1)
	go func() { _, err := r.AcquireWait(ctx, Request{Lock: "x"}, time.Hour); c <- err }()
	<-turnedAway
	<-turnedAway // after it was told that one listens
	counts(t, pool, rows, "1", "it waits")
	cause := errors.New("enough")
	cancel(cause)
	if err := <-c; !errors.Is(err, cause) || errors.Is(err, ErrHeld) {
		t.Errorf("%v", err)
	}
	counts(t, pool, rows, "0", "no row is left")
}

func TestAWaitsEndIsNotHeldUpByItsRow(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "r")
	mustAcquire(t, r, "x")
	ctx, cancel := context.WithCancel(t.Context())
	turnedAway := make(chan struct{}, 9)
	r.waits.poll = func() time.Duration { turnedAway <- struct{}{}; return never() }
	c := make(chan error, 1)
	go func() { _, err := r.AcquireWait(ctx, Request{Lock: "x"}, time.Hour); c <- err }()
	<-turnedAway
	<-turnedAway // after it was told that one listens
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	run(t, tx, `with l as (select id from pawl.waiters for update) select count(*)::text from l`)
	start := time.Now()
	cancel()
	if err := <-c; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v to go", took)
	}
}

// Each notification takes a lock on all commits.
func TestAReleaseNotifiesOnlyWhenSomebodyWaits(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "r")
	ear, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer ear.Release()
	run(t, ear, `listen pawl_released`)
	waits := func(lock, until string) {
		run(t, pool, `insert into pawl.waiters (id, lock, until) values (gen_random_uuid(), $1, clock_timestamp() + $2::text::interval)`, lock, until)
	}
	waits("gone", "-1 ms")
	waits("waited for", "1 min")
	waits("waited for", "2 min")
	for _, lock := range []string{"nobody's", "gone", "waited for"} {
		if err := r.Release(t.Context(), mustAcquire(t, r, lock)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.AcquireRequest(t.Context(), Request{Lock: lock, Holder: "alice", Key: "k1"}); err != nil {
			t.Fatal(err)
		}
		if err := r.ReleaseAs(t.Context(), alice.on(lock)); err != nil {
			t.Fatal(err)
		}
	}
	run(t, pool, `select pg_notify('pawl_released', 'the end')::text`)
	var got []string
	for len(got) == 0 || got[len(got)-1] != "the end" {
		n, err := ear.Conn().WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n.Payload)
	}
	if len(got) != 3 || got[0] != "waited for" || got[1] != "waited for" {
		t.Errorf("notified %q", got)
	}
}

func TestARowOfAWaiterThatIsLongGoneIsClearedAway(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "r")
	run(t, pool, `insert into pawl.waiters (id, lock, until) values (gen_random_uuid(), 'x', clock_timestamp() - interval '1 h')`)
	mustAcquire(t, r, "x")
	if _, err := r.AcquireWait(t.Context(), Request{Lock: "x"}, time.Millisecond); !errors.Is(err, ErrHeld) {
		t.Fatal(err)
	}
	if got := run(t, pool, `select count(*)::text from pawl.waiters`); got != "0" {
		t.Errorf("%s rows", got)
	}
}

// The listener's connection breaks: it is made again, and nobody who waits is forgotten.
func TestAWaiterOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	holder, r := newRepo(t, pool, "holder"), newRepo(t, pool, "r")
	l := mustAcquire(t, holder, "x")
	c := asleep(t, r, pool)
	run(t, pool, `select pg_terminate_backend(pid)::text from pg_stat_activity where application_name = 'pawl waiting' and datname = current_database()`)
	if err := holder.Release(t.Context(), l); err != nil { // perhaps nobody listens now
		t.Fatal(err)
	}
	granted(t, c)
}
