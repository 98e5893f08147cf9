package lockrepo

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// short is a Repo whose leases last a second.
func short(t testing.TB, pool *pgxpool.Pool) *Repo {
	t.Helper()
	r, err := New(Config{Pool: pool, Holder: "a", TTL: time.Second, Grace: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// untilBeaten waits until a lock's lease has been renewed n times.
func untilBeaten(t testing.TB, pool interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, lock, n string,
) {
	t.Helper()
	pgtest.Eventually(t, 20*time.Second, "the lease of "+lock+" has been renewed", func() bool {
		return run(t, pool, "select (beats >= $2::text::int)::text from pawl.locks where name = $1", lock, n) == "true"
	})
}

func TestHoldRenewsAndReleases(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := short(t, pool)
	err := r.Hold(t.Context(), "x", func(ctx context.Context, l Lease) error {
		if err := r.Hold(ctx, "x", nil); !errors.Is(err, ErrHeld) {
			t.Errorf("Hold while held: %v, want ErrHeld", err)
		}
		untilBeaten(t, pool, "x", "4") // longer than the TTL
		return ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	if i, err := r.Show(t.Context(), "x"); err != nil || i.State != Free {
		t.Errorf("after Hold: %+v, %v", i, err)
	}
	mine := errors.New("mine")
	if err := r.Hold(t.Context(), "x", func(context.Context, Lease) error { return mine }); err != mine { //nolint:errorlint // the very error
		t.Errorf("Hold = %v, want the function's own error", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = r.Hold(t.Context(), "x", func(context.Context, Lease) error { panic("boom") })
	}()
	if got := ends(t, r); got != "released released released" {
		t.Errorf("history %q", got)
	}
}

func TestHoldAnswersTheLoss(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := short(t, pool)
	for name, c := range map[string]struct {
		lose func(l Lease)
		want error
	}{
		"forced":     {func(l Lease) { force(t, r, l) }, ErrForced},
		"expired":    {func(l Lease) { expire(t, pool, l.Token.Lock) }, ErrExpired},
		"taken over": {func(l Lease) { expire(t, pool, l.Token.Lock); mustAcquire(t, r, l.Token.Lock) }, ErrTakenOver},
	} {
		var inside error
		err := r.Hold(t.Context(), name, func(ctx context.Context, l Lease) error {
			c.lose(l)
			<-ctx.Done()
			inside = context.Cause(ctx)
			return nil // it hasn't noticed
		})
		if !errors.Is(inside, c.want) || !errors.Is(err, c.want) || !errors.Is(err, ErrNotHeld) {
			t.Errorf("%s: inside %v, Hold = %v, want %v", name, inside, err, c.want)
		}
	}
	// A loss that no beat has seen is found by the release.
	err := r.Hold(t.Context(), "unseen", func(_ context.Context, l Lease) error { force(t, r, l); return nil })
	if !errors.Is(err, ErrForced) {
		t.Errorf("unseen loss: %v, want ErrForced", err)
	}
}

func TestHoldReleasesAfterItsContextHasEnded(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := short(t, pool)
	ctx, cancel := context.WithCancel(t.Context())
	err := r.Hold(ctx, "x", func(ctx context.Context, _ Lease) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Hold = %v", err)
	}
	if got := ends(t, r); got != "released" {
		t.Errorf("history %q", got)
	}
	// A function that ignores its context is renewed for the grace, no longer.
	ctx, cancel = context.WithCancel(t.Context())
	err = r.Hold(ctx, "y", func(context.Context, Lease) error {
		cancel()
		pgtest.Eventually(t, 10*time.Second, "the lease runs out", func() bool {
			return run(t, pool, "select (expires_at <= clock_timestamp())::text from pawl.locks where name = 'y'") == "true"
		})
		return nil
	})
	if !errors.Is(err, ErrGraceOver) {
		t.Errorf("Hold = %v, want ErrGraceOver", err)
	}
}

func TestAnExhaustedPoolDoesNotStopTheHeartbeats(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := pgtest.Open(t, url)
	r := short(t, pool)
	l, err := r.Acquire(t.Context(), "x", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	ctx, kept := r.Keep(t.Context(), l)
	defer kept.Stop()
	var all []*pgxpool.Conn
	for range pool.Config().MaxConns { // jobs that hold every connection
		c, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
		all = append(all, c)
	}
	untilBeaten(t, all[0], "x", "6") // twice the TTL
	if ctx.Err() != nil {
		t.Errorf("lost: %v", context.Cause(ctx))
	}
}

func TestWithoutTheDatabaseALeaseEndsBeforeItsEndByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	var away atomic.Bool
	cfg.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
		if away.Load() {
			return errAway
		}
		return nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	r := short(t, pool)
	l, err := r.Acquire(t.Context(), "x", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	away.Store(true) // for new connections: the heartbeats'
	ctx, kept := r.Keep(t.Context(), l)
	defer kept.Stop()
	<-ctx.Done()
	alive := run(t, pool, "select (expires_at > clock_timestamp())::text || beats from pawl.locks where name = 'x'")
	if alive != "true0" || !errors.Is(context.Cause(ctx), ErrExpired) {
		t.Errorf("lease still there, and beats: %s; cause %v", alive, context.Cause(ctx))
	}
	away.Store(false)
	next, err := r.Acquire(t.Context(), "y", time.Second) // the keeper is as good as new
	if err != nil {
		t.Fatal(err)
	}
	ctx, kept = r.Keep(t.Context(), next)
	defer kept.Stop()
	untilBeaten(t, pool, "y", "4")
	if ctx.Err() != nil {
		t.Errorf("lost: %v", context.Cause(ctx))
	}
}

func TestABrokenHeartbeatConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := short(t, pool)
	l, err := r.Acquire(t.Context(), "x", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	ctx, kept := r.Keep(t.Context(), l)
	defer kept.Stop()
	for _, n := range []string{"2", "4", "6"} {
		untilBeaten(t, pool, "x", n)
		if got := run(t, pool, "select count(pg_terminate_backend(pid))::text from pg_stat_activity where application_name = 'pawl heartbeat' and datname = current_database()"); got == "0" {
			t.Error("no heartbeat connection found")
		}
	}
	untilBeaten(t, pool, "x", "9")
	if ctx.Err() != nil {
		t.Errorf("lost: %v", context.Cause(ctx))
	}
}

func TestTenThousandGrantedLeasesAreKept(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	sent := Now() // as a statement of the caller's own would
	rows, err := pool.Query(t.Context(), `insert into pawl.locks (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
		select 'l' || i, i, 1, gen_random_uuid(), 'a', '6 s', clock_timestamp(), clock_timestamp(), clock_timestamp() + interval '6 s'
		  from generate_series(1, 10000) i returning name, token, grant_id::text`)
	if err != nil {
		t.Fatal(err)
	}
	var all []*Kept
	var tok fence.Token
	var grant string
	if _, err := pgx.ForEachRow(rows, []any{&tok.Lock, &tok.Seq, &grant}, func() error {
		_, kept := r.Keep(t.Context(), r.Granted(tok, uuid.MustParse(grant), "a", 6*time.Second, sent))
		all = append(all, kept)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, time.Minute, "each has been renewed three times", func() bool {
		return run(t, pool, "select (min(beats) >= 3)::text from pawl.locks") == "true"
	})
	for _, kept := range all {
		if err := kept.Check(); err != nil {
			t.Fatal(err)
		}
		kept.Stop()
	}
}
