package lockrepo

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// What isn't an answer of the protocol's is none: the API says so instead of granting or refusing.
func TestNoAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		nil, &HeldError{Lock: "x"}, &LostError{Cause: ErrExpired}, ErrEnded, ErrReused, ErrMismatch, ErrPrecondition,
		fmt.Errorf("x: %w", ErrNotFound), fmt.Errorf("x: %w", checkTTL(1)), errors.Join(context.DeadlineExceeded, ErrNotHeld),
	} {
		if Unknown(err) {
			t.Errorf("%v is an answer", err)
		}
	}
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	closed := newRepo(t, away(t, pool), "b")
	run(t, pool, `alter table pawl.fences rename to elsewhere`)
	for what, ask := range map[string]func() error{
		"the context has ended":  func() error { _, err := r.Acquire(over, "x", 0); return err },
		"nobody is there":        func() error { _, err := closed.Acquire(t.Context(), "x", 0); return err },
		"nobody is there either": func() error { _, err := closed.RenewAs(t.Context(), alice.on("x")); return err },
		"nor here":               func() error { return closed.ReleaseAs(t.Context(), alice.on("x")) },
		"nor there":              func() error { _, err := closed.List(t.Context(), Filter{}); return err },
		"no request is known":    func() error { _, err := closed.AcquireIdempotent(t.Context(), request(alice), "i", body); return err },
		"the question fails": func() error {
			_, _, err := r.CheckTarget(t.Context(), fence.Token{Lock: "x", Seq: 1}, "t")
			return err
		},
	} {
		if err := ask(); !Unknown(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// away is a pool of a server that isn't there.
func away(t *testing.T, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	cfg := pool.Config()
	cfg.ConnConfig.Host, cfg.ConnConfig.Port, cfg.ConnConfig.ConnectTimeout = "127.0.0.1", 1, time.Second
	cfg.ConnConfig.Fallbacks = nil
	p, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Whatever ends a lease writes who asked for it and when it would have ended.
func TestATenureKeepsTheRequestAndTheEnd(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]scene{
		"released": releasedBy(alice),
		"forced":   forced,
		"taken_over": func(t *testing.T, r *Repo, pool *pgxpool.Pool) {
			t.Helper()
			expire(t, pool, "x")
			bob.mustAcquire(t, r)
		},
		"reacquired": heldBy(alice),
		"by grant": func(t *testing.T, r *Repo, pool *pgxpool.Pool) {
			t.Helper()
			grant := run(t, pool, `select grant_id::text from pawl.locks`)
			if _, _, err := r.release(t.Context(), "x", nil, grant); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			r := newRepo(t, pool, "server")
			alice.mustAcquire(t, r)
			if got := run(t, pool, `select request_id from pawl.locks`); got != "req-alice" {
				t.Errorf("while it lives: %q", got)
			}
			end(t, r, pool)
			if got := run(t, pool, `select concat_ws(' ', request_id, holder, key, expires_at >= ended_at, how = $1) from pawl.tenures`, how); got != "req-alice alice k1 t t" && !(how == "by grant" && got == "req-alice alice k1 t f") {
				t.Errorf("its tenure: %q", got)
			}
			now := map[string]string{"taken_over": "req-bob", "reacquired": "req-alice"}[how]
			if got := run(t, pool, `select request_id from pawl.locks`); got != now {
				t.Errorf("after it: %q, want %q", got, now)
			}
		})
	}
}

// Many requests in one statement keep theirs apart.
func TestGatheredRequestsKeepTheirIds(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "server")
	a := Request{Lock: "a", Holder: "h", Key: "k", TTL: time.Minute, RequestID: "req-a"}
	b, c := a, a
	b.Lock, b.RequestID = "b", "req-b"
	c.Lock, c.RequestID = "c", ""
	for i, q := range []*Request{&a, &b, &c} {
		q.Grant = [16]byte{byte(i + 1)}
	}
	if _, err := r.acquireMany(t.Context(), []Request{a, b, c}); err != nil {
		t.Fatal(err)
	}
	if got := run(t, pool, `select string_agg(coalesce(request_id, 'null'), ' ' order by name) from pawl.locks`); got != "req-a req-b null" {
		t.Errorf("%q", got)
	}
}
