package lockrepo

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"pawl/internal/pgtest"
)

var body = [32]byte{1}

func request(a as) Request {
	return Request{Lock: "x", Holder: a.holder, Key: a.key, TTL: time.Minute, Reenter: true}
}

func mustAsk(t *testing.T, r *Repo, a as, idempotencyKey string) Lease {
	t.Helper()
	l, err := r.AcquireIdempotent(t.Context(), request(a), idempotencyKey, body)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestARequestAskedAgainIsTheSameGrantUntilItsLeaseEnds(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "server")
	one := mustAsk(t, r, alice, "i1")
	again := mustAsk(t, newRepo(t, pool, "another server"), alice, "i1")
	if again.Token != one.Token || again.Grant != one.Grant || !again.AcquiredAt.Equal(one.AcquiredAt) {
		t.Errorf("again %+v, first %+v", again, one)
	}
	run(t, pool, `update pawl.locks set renewed_at = renewed_at - interval '40 s', expires_at = expires_at - interval '40 s'`)
	late := mustAsk(t, r, alice, "i1")
	if left := late.ExpiresAt.Sub(one.ExpiresAt); left != -40*time.Second {
		t.Errorf("asked again it ends %v after it would have: a retry moves nothing", left)
	}
	if left := late.left(Now()); left > 14*time.Second || left < 0 {
		t.Errorf("20s before its end it is trusted for %v, want 14s less the time since", left)
	}
	for how, end := range map[string]func(){
		"expired":  func() { expire(t, pool, "x") },
		"released": func() { releasedBy(alice)(t, r, pool) },
	} {
		end()
		next := mustAsk(t, r, alice, "i1")
		if next.Token.Seq <= again.Token.Seq || next.Grant == again.Grant {
			t.Errorf("after it was %s: %+v, before %+v", how, next, again)
		}
		if same := mustAsk(t, r, alice, "i1"); same.Token != next.Token {
			t.Errorf("and again: %+v, want %+v", same, next)
		}
		again = next
	}
	if got := run(t, pool, `select count(*)::text from pawl.idempotency`); got != "1" {
		t.Errorf("%s rows", got)
	}
}

func TestAnIdempotencyKeyNamesOneRequestOfOneKeyAndLock(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "server")
	one := mustAsk(t, r, alice, "i1")
	for _, state := range []string{"while its lease lives", "after it"} {
		if _, err := r.AcquireIdempotent(t.Context(), request(alice), "i1", [32]byte{2}); !is(err, ErrReused) {
			t.Errorf("another body %s: %v", state, err)
		}
		if state == "while its lease lives" {
			releasedBy(alice)(t, r, pool)
		}
	}
	heldBy(alice)(t, r, pool)
	again := mustAsk(t, r, alice, "i3")
	if _, err := r.AcquireIdempotent(t.Context(), request(impostor), "i3", body); !is(err, ErrHeld) {
		t.Errorf("another API key while the lease %s lives: %v", again.Token, err)
	}
	if other := mustAsk(t, r, alice, "i2"); other.Grant == one.Grant {
		t.Error("another idempotency key has the same grant")
	}
	releasedBy(alice)(t, r, pool)
	if other := mustAsk(t, r, impostor, "i1"); other.Grant == one.Grant {
		t.Error("another API key has the same grant")
	}
	q := request(alice)
	q.Lock = "y"
	if other, err := r.AcquireIdempotent(t.Context(), q, "i1", body); err != nil || other.Grant == one.Grant {
		t.Errorf("another lock: %+v, %v", other, err)
	}
}

func TestARequestThatWasTurnedAwayMayBeGrantedLater(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "server")
	bob.mustAcquire(t, r)
	const written = `select string_agg(concat(xmin, ' ', grant_id), ',') from pawl.idempotency`
	if _, err := r.AcquireIdempotent(t.Context(), request(alice), "i1", body); !is(err, ErrHeld) {
		t.Fatalf("held by another: %v", err)
	}
	first := run(t, pool, written)
	if _, err := r.AcquireIdempotent(t.Context(), request(alice), "i1", body); !is(err, ErrHeld) {
		t.Fatalf("held by another, again: %v", err)
	}
	if now := run(t, pool, written); now != first || first == "" {
		t.Errorf("turned away again it wrote %q, before %q", now, first)
	}
	releasedBy(bob)(t, r, pool)
	if l := mustAsk(t, r, alice, "i1"); !strings.Contains(first, l.Grant.String()) {
		t.Errorf("granted %s, asked for as %s", l.Grant, first)
	}
}

// All of them are the same request, sent again before its answer came.
func TestRetriesAtOnceGetOneGrant(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "server")
	for round := range 4 {
		var all sync.WaitGroup
		leases, errs := make([]Lease, 16), make([]error, 16)
		for i := range leases {
			all.Go(func() { leases[i], errs[i] = r.AcquireIdempotent(t.Context(), request(alice), "i1", body) })
		}
		all.Wait()
		tokens := map[int64]int{}
		for i, l := range leases {
			switch {
			case errs[i] == nil:
				tokens[l.Token.Seq]++
			case !errors.Is(errs[i], ErrHeld): // the row was just being taken by another retry
				t.Errorf("round %d: %v", round, errs[i])
			}
		}
		if len(tokens) != 1 {
			t.Errorf("round %d: tokens %v", round, tokens)
		}
		expire(t, pool, "x")
	}
}

func TestARequestThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	r := newRepo(t, pgtest.New(t), "server")
	granted := request(alice)
	granted.Grant = uuid.New()
	short := request(alice)
	short.TTL = time.Millisecond
	for want, ask := range map[string]func() (Lease, error){
		`idempotency key "" is empty`: func() (Lease, error) { return r.AcquireIdempotent(t.Context(), request(alice), "", body) },
		"longer than 255 bytes": func() (Lease, error) {
			return r.AcquireIdempotent(t.Context(), request(alice), strings.Repeat("i", 256), body)
		},
		"leave one of them out": func() (Lease, error) { return r.AcquireIdempotent(t.Context(), granted, "i", body) },
		"TTL 1ms":               func() (Lease, error) { return r.AcquireIdempotent(t.Context(), short, "i", body) },
	} {
		if _, err := ask(); !is(err, ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Two retries meet where neither is written yet: the second takes the grant of the first.
func TestTheSecondOfTwoFirstRequestsHasTheGrantOfTheFirst(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "server")
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := uuid.New()
	run(t, tx, `insert into pawl.idempotency (key, lock, idempotency_key, body, grant_id) values ('k1', 'x', 'i1', $1, $2::text::uuid) returning lock`, body[:], first.String())
	var second Lease
	c, ctx := make(chan error, 1), t.Context()
	go func() { var err error; second, err = r.AcquireIdempotent(ctx, request(alice), "i1", body); c <- err }()
	pgtest.Eventually(t, 10*time.Second, "the second waits for the first", func() bool {
		return run(t, pool, `select count(*)::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == "1"
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-c; err != nil || second.Grant != first {
		t.Errorf("granted %s, %v; the first has asked for %s", second.Grant, err, first)
	}
}
