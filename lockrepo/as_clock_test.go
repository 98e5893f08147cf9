package lockrepo

import (
	"context"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

// The clock can be set in this test alone: an instant is met exactly.
func TestAnInstantIsMetExactly(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "server")
	run(t, pool, `create schema fake`)
	run(t, pool, `create function fake.clock_timestamp() returns timestamptz language sql as $$ select current_setting('fake.now')::timestamptz $$`)
	c, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	run(t, c, `select set_config('search_path', 'fake, pg_catalog', false)`)
	for _, s := range []struct{ name, now, renew, release string }{
		{"a microsecond before the end", "2026-09-16 12:59:59.999999Z", "renewed", "released"},
		{"at the end", "2026-09-16 13:00Z", "lost", "expired"},
	} {
		heldBy(alice)(t, r, pool)
		run(t, pool, `update pawl.locks set acquired_at = '2026-09-16 12:00Z', renewed_at = '2026-09-16 12:00Z', expires_at = '2026-09-16 13:00Z'`)
		run(t, c, `select set_config('fake.now', $1, false)`, s.now)
		if got := run(t, c, `select outcome from pawl.release_as('x', 'alice', 'k1', 0)`); got != s.release {
			t.Errorf("release %s: %s, want %s", s.name, got, s.release)
		}
		run(t, pool, `delete from pawl.locks`)
		heldBy(alice)(t, r, pool)
		run(t, pool, `update pawl.locks set acquired_at = '2026-09-16 12:00Z', renewed_at = '2026-09-16 12:00Z', expires_at = '2026-09-16 13:00Z'`)
		if got := run(t, c, `select outcome from pawl.renew_as('x', 'alice', 'k1', 0, '1 h', '2 h')`); got != s.renew {
			t.Errorf("renew %s: %s, want %s", s.name, got, s.renew)
		}
		run(t, pool, `delete from pawl.locks`)
	}
	heldBy(alice)(t, r, pool)
	run(t, pool, `update pawl.locks set acquired_at = '2026-09-15 12:00Z', renewed_at = '2026-09-16 12:00Z', expires_at = '2026-09-16 13:00Z'`)
	for _, s := range []struct{ now, limit, want, end string }{
		{"2026-09-16 11:59:59.999999Z", "48 h", "renewed", "2026-09-16 12:59:59.999999"},
		{"2026-09-16 11:59:59.999999Z", "24 h", "renewed", "2026-09-16 12:00:00"},
		{"2026-09-16 12:00Z", "24 h", "lost", "2026-09-16 13:00:00"},
		{"2026-09-16 12:30Z", "24 h", "lost", "2026-09-16 13:00:00"},
		{"2026-09-16 12:30Z", "", "renewed", "2026-09-16 13:30:00"},
	} {
		run(t, pool, `update pawl.locks set expires_at = '2026-09-16 13:00Z'`)
		run(t, c, `select set_config('fake.now', $1, false)`, s.now)
		if got := run(t, c, `select outcome from pawl.renew_as('x', 'alice', 'k1', 0, '1 h', nullif($1, '')::interval)`, s.limit); got != s.want {
			t.Errorf("renew at %s with a limit of %q: %s, want %s", s.now, s.limit, got, s.want)
		}
		if end := run(t, pool, `select (expires_at at time zone 'UTC')::text from pawl.locks`); end != s.end {
			t.Errorf("renewed at %s with a limit of %q it ends at %s, want %s", s.now, s.limit, end, s.end)
		}
	}
}

func TestNothingIsHeldLongerThanMaxHold(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "server")
	alice.mustAcquire(t, r)
	a := alice.on("x")
	a.MaxHold = time.Hour
	run(t, pool, `update pawl.locks set acquired_at = clock_timestamp() - interval '59 min'`)
	i, err := r.RenewAs(t.Context(), a)
	if err != nil || !i.ExpiresAt.Equal(i.AcquiredAt.Add(time.Hour)) || i.TTL.Duration() != i.ExpiresAt.Sub(*i.RenewedAt) || i.TTL.Duration() > time.Minute {
		t.Errorf("before: %+v, %v; want a lease that ends an hour after it was acquired", i, err)
	}
	run(t, pool, `update pawl.locks set acquired_at = clock_timestamp() - interval '1 h', expires_at = clock_timestamp() + interval '1 h'`)
	if _, err := r.RenewAs(t.Context(), a); !is(err, ErrNotHeld) {
		t.Errorf("at an hour: %v", err)
	}
	a.MaxHold = 0
	if _, err := r.RenewAs(t.Context(), a); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

const waitsForARow = `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%pawl.re%_as%'`

// What had to wait for the row is judged by the clock of after the wait.
func TestRenewAndReleaseAreJudgedAfterTheirWait(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "server")
	alice.mustAcquire(t, r)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, pool, `update pawl.locks set expires_at = clock_timestamp() + interval '2 s'`)
	run(t, tx, `select name from pawl.locks where name = 'x' for update`)
	renewed, released := make(chan error, 1), make(chan error, 1)
	go func() { _, err := r.RenewAs(context.WithoutCancel(t.Context()), alice.on("x")); renewed <- err }()
	go func() { released <- r.ReleaseAs(context.WithoutCancel(t.Context()), alice.on("x")) }()
	pgtest.Eventually(t, 2*time.Second, "both wait", func() bool { return run(t, pool, `select (`+waitsForARow+`)::text`) == "2" })
	pgtest.Eventually(t, 5*time.Second, "the lease has ended", func() bool {
		return run(t, pool, `select (expires_at < clock_timestamp())::text from pawl.locks`) == "true"
	})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-renewed; !is(err, ErrNotHeld) {
		t.Errorf("renew: %v", err)
	}
	if err := <-released; !is(err, ErrNotFound) {
		t.Errorf("release: %v", err)
	}
}
