package lockrepo

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
)

func newRepo(t testing.TB, pool *pgxpool.Pool, holder string) *Repo {
	t.Helper()
	r, err := New(Config{Pool: pool, Holder: holder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func mustAcquire(t testing.TB, r *Repo, lock string) Lease {
	t.Helper()
	l, err := r.Acquire(t.Context(), lock, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func run(t testing.TB, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, sql string, args ...any,
) string {
	t.Helper()
	var s *string
	if err := db.QueryRow(t.Context(), sql, args...).Scan(&s); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatalf("%s: %v", sql, err)
	}
	if s == nil {
		return ""
	}
	return *s
}

// expire ends a lease now, by the database's clock, without a wait.
func expire(t testing.TB, pool *pgxpool.Pool, lock string) {
	t.Helper()
	run(t, pool, "update pawl.locks set expires_at = clock_timestamp() - interval '1 ms' where name = $1", lock)
}

// ends lists the history of lock x, oldest first: how>successor's place.
func ends(t testing.TB, r *Repo) string {
	t.Helper()
	h, err := r.History(t.Context(), "x", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(h)
	var out []string
	for i, e := range h {
		s := e.How
		if e.Successor != nil {
			s += ">?"
			if i+1 < len(h) && *e.Successor == h[i+1].Token {
				s = e.How + ">next"
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestALockIsGrantedOnceAndTheOtherIsToldWhoHasIt(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	a, b := newRepo(t, pool, "a"), newRepo(t, pool, "b")
	l := mustAcquire(t, a, "x")
	if l.Token.Seq <= 0 || l.Holder != "a" || l.ExpiresAt.Sub(l.AcquiredAt).Round(time.Millisecond) != time.Minute || l.ExpiresAt.Location() != time.UTC {
		t.Errorf("lease %+v", l)
	}
	for _, r := range []*Repo{a, b} { // the holder too
		_, err := r.Acquire(t.Context(), "x", 0)
		var held *HeldError
		if !errors.Is(err, ErrHeld) || !errors.As(err, &held) {
			t.Fatalf("second Acquire = %v, want a HeldError", err)
		}
		if *held != (HeldError{"x", "a", l.Token.Seq, l.ExpiresAt}) {
			t.Errorf("held by %+v", *held)
		}
	}
	if err := a.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	next := mustAcquire(t, b, "x")
	if next.Token.Seq <= l.Token.Seq {
		t.Errorf("token %d after %d", next.Token.Seq, l.Token.Seq)
	}
}

func TestTheSameGrantIsTheSameLeaseUntilItEnds(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	q := Request{Lock: "x", Grant: uuid.New(), TTL: time.Minute, Key: "k"}
	one, err := r.AcquireRequest(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	two, err := r.AcquireRequest(t.Context(), q)
	if err != nil || two.Token != one.Token || two.AcquiredAt != one.AcquiredAt || two.ExpiresAt.Before(one.ExpiresAt) {
		t.Fatalf("asked again: %+v, %v; want %+v", two, err, one)
	}
	expire(t, pool, "x")
	if _, err := r.AcquireRequest(t.Context(), q); !errors.Is(err, ErrEnded) {
		t.Errorf("after its end: %v, want ErrEnded", err)
	}
	next := mustAcquire(t, r, "x")
	if _, err := r.AcquireRequest(t.Context(), q); !errors.Is(err, ErrEnded) {
		t.Errorf("after the takeover: %v, want ErrEnded", err)
	}
	if err := r.Release(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if _, err := r.AcquireRequest(t.Context(), q); !errors.Is(err, ErrEnded) {
		t.Errorf("of a free lock: %v, want ErrEnded", err)
	}
	if got := ends(t, r); got != "taken_over>next released" {
		t.Errorf("history %q", got)
	}
}

func TestReenterTakesOwnLeaseWithALargerToken(t *testing.T) {
	t.Parallel()
	r := newRepo(t, pgtest.New(t), "a")
	q := Request{Lock: "x", Key: "k", TTL: time.Minute, Reenter: true}
	one, err := r.AcquireRequest(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	two, err := r.AcquireRequest(t.Context(), q)
	if err != nil || two.Token.Seq <= one.Token.Seq {
		t.Fatalf("reentered: %+v, %v", two, err)
	}
	q.Key = "another"
	if _, err := r.AcquireRequest(t.Context(), q); !errors.Is(err, ErrHeld) {
		t.Errorf("with another key: %v, want ErrHeld", err)
	}
	if _, err := r.Renew(t.Context(), one); !errors.Is(err, ErrTakenOver) {
		t.Errorf("the old lease's renewal: %v, want ErrTakenOver", err)
	}
	if got := ends(t, r); got != "reacquired>?" {
		t.Errorf("history %q", got)
	}
}

// Not parallel: it counts the server's transactions.
func TestTwoHundredContendersHaveOneWinnerWhoAloneWrites(t *testing.T) {
	pool := pgtest.New(t)
	r := newRepo(t, pool, "")
	mustAcquire(t, r, "warm")
	var won, other atomic.Int64
	var wg sync.WaitGroup
	const nextID = "select txid_snapshot_xmax(txid_current_snapshot())::text"
	before, err := strconv.Atoi(run(t, pool, nextID))
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		wg.Go(func() {
			_, err := r.Acquire(t.Context(), "x", time.Minute)
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, ErrHeld):
				other.Add(1)
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || other.Load() != 0 {
		t.Errorf("%d winners, %d errors", won.Load(), other.Load())
	}
	after, err := strconv.Atoi(run(t, pool, nextID))
	if err != nil || after-before > 10 {
		t.Errorf("%d transactions wrote, %v: who is turned away should not", after-before, err)
	}
	expire(t, pool, "x")
	won.Store(0)
	for range 200 {
		wg.Go(func() {
			if _, err := r.Acquire(t.Context(), "x", time.Minute); err == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d winners of an expired lease", won.Load())
	}
}

func TestABirthDoesNotWaitForAnothersBirth(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var outcome string
	if err := tx.QueryRow(t.Context(), `select outcome from pawl.acquire('x', 'other', gen_random_uuid(), '1 min', '', false)`).
		Scan(&outcome); err != nil || outcome != "granted" {
		t.Fatal(outcome, err)
	}
	start := time.Now()
	if _, err := r.Acquire(t.Context(), "x", time.Minute); !errors.Is(err, ErrHeld) || time.Since(start) > 5*time.Second {
		t.Errorf("beside an uncommitted birth: %v after %v, want ErrHeld at once", err, time.Since(start))
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, r, "x")
}

func TestAcquireDoesNotWaitForAnOpenGuardedTransaction(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	l := mustAcquire(t, r, "x")
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := fence.Guard(t.Context(), tx, l.Token); err != nil {
		t.Fatal(err)
	}
	if l, err = r.Renew(t.Context(), l); err != nil { // a renewal passes the guard
		t.Fatal(err)
	}
	expire(t, pool, "x")
	var held *HeldError
	if _, err := r.Acquire(t.Context(), "x", 0); !errors.As(err, &held) || held.Holder != "a" {
		t.Errorf("takeover beside a guarded transaction: %v, want ErrHeld", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, r, "x")
}

func TestAcquireAdoptsANewServerAndTokensGrow(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	l := mustAcquire(t, r, "x")
	if err := r.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	run(t, pool, "update pawl.clock set incarnation = 1, since = 'epoch'")
	next := mustAcquire(t, r, "x")
	if next.Token.Seq < l.Token.Seq+50e6 {
		t.Errorf("token %d after %d: want the floor raised by 60 s", next.Token.Seq, l.Token.Seq)
	}
	run(t, pool, "update pawl.clock set incarnation = 1, system_identifier = 1")
	if _, err := r.Acquire(t.Context(), "y", 0); !errors.Is(err, fence.ErrOtherDatabase) {
		t.Errorf("in a restored copy: %v, want ErrOtherDatabase", err)
	} else if !strings.Contains(err.Error(), "if this copy may run what it owes, say so with: pawl adopt") {
		t.Errorf("in a restored copy: %v, which doesn't say what to do", err)
	}
	if err := r.Adopt(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, r, "y")
}

func TestADeletedRowsNextTokenIsLarger(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	run(t, pool, "update pawl.clock set floor = 5000000000000000") // tokens ahead of the clock: only the floor can tell
	l := mustAcquire(t, r, "x")
	run(t, pool, "delete from pawl.locks where name = 'x'")
	if _, err := r.Renew(t.Context(), l); !errors.Is(err, ErrNotHeld) {
		t.Errorf("renewal of a deleted row: %v", err)
	}
	if next := mustAcquire(t, r, "x"); next.Token.Seq <= l.Token.Seq {
		t.Errorf("token %d after %d", next.Token.Seq, l.Token.Seq)
	}
}

// From SQL anything may come.
func TestAnAcquireWithoutNameGrantOrTTLIsRefused(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	for _, args := range []string{"'', 'me', gen_random_uuid(), '1 min'", "null, 'me', gen_random_uuid(), '1 min'", "'x', 'me', null, '1 min'", "'x', 'me', gen_random_uuid(), '-3 s'", "'x', 'me', gen_random_uuid(), '0'", "'x', 'me', gen_random_uuid(), null"} {
		var pg *pgconn.PgError
		if _, err := pool.Exec(t.Context(), `select pawl.acquire(`+args+`, '', false)`); !errors.As(err, &pg) || pg.Code != "22023" {
			t.Errorf("acquire(%s) = %v, want 22023", args, err)
		}
	}
}

// deaf loses what the server says, once armed.
type deaf struct {
	net.Conn
	armed *atomic.Bool
}

func (d deaf) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if d.armed.CompareAndSwap(true, false) {
		_ = d.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func TestAnUnansweredGrantIsReleased(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	var armed atomic.Bool
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return deaf{c, &armed}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	r := newRepo(t, pool, "a")
	defer r.Close()
	if err := r.Release(t.Context(), mustAcquire(t, r, "x")); err != nil { // statements are prepared now
		t.Fatal(err)
	}
	armed.Store(true)
	if _, err := r.Acquire(t.Context(), "x", time.Minute); err == nil || errors.Is(err, ErrHeld) {
		t.Fatalf("Acquire with a lost reply = %v", err)
	}
	pgtest.Eventually(t, 10*time.Second, "the lost grant is released", func() bool {
		return run(t, pool, "select count(*)::text from pawl.tenures where lock = 'x' and how = 'released'") == "2"
	})
	// Asked with a grant id of one's own, it is left for the caller to ask again.
	q := Request{Lock: "y", Grant: uuid.New(), TTL: time.Minute}
	mustAcquire(t, r, "warm") // a connection
	armed.Store(true)
	if _, err := r.AcquireRequest(t.Context(), q); err == nil {
		t.Fatal("no error though the reply was lost")
	}
	token := run(t, pool, "select token::text from pawl.locks where name = 'y' and grant_id is not null")
	if l, err := r.AcquireRequest(t.Context(), q); err != nil || run(t, pool, "select $1::bigint::text", l.Token.Seq) != token {
		t.Errorf("asked again: %v, %v; want token %s", l, err, token)
	}
}
