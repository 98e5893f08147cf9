package lockrepo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

func TestCountsEndAboveTenThousand(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	counts := func() string {
		held, stale, total, err := r.LockCounts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended, live, err := r.TenureCounts(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(held, stale, total, ended, live)
	}
	if got := counts(); got != "0 0 0 0 0" {
		t.Errorf("of an empty database: %s", got)
	}
	if err := r.Release(t.Context(), mustAcquire(t, r, "x")); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, r, "x")
	mustAcquire(t, r, "y")
	expire(t, pool, "y")
	if err := r.Release(t.Context(), mustAcquire(t, r, "z")); err != nil {
		t.Fatal(err)
	}
	if got := counts(); got != "1 1 3 1 1" {
		t.Errorf("counts %s, want 1 1 3 1 1", got)
	}
	must(t, pool, `insert into pawl.locks (name, token, incarnation) select 'free ' || n, 1, 1 from generate_series(1, 30000) n`,
		`insert into pawl.tenures (lock, token, grant_id, ended_at, how) select 'x', n, gen_random_uuid(), clock_timestamp(), 'released' from generate_series(1, 12000) n`,
		`vacuum analyze pawl.locks, pawl.tenures`)
	readsLittleBut(t, pool, present(), countCap, lockCountsSQL, countCap)
	readsLittle(t, pool, countCap, tenureCountsSQL, "x", countCap)
	must(t, pool, `insert into pawl.locks (name, token, incarnation, grant_id, expires_at) select 'more ' || n, 1, 1, gen_random_uuid(), clock_timestamp() + interval '1 h' from generate_series(1, 12000) n`)
	if got := counts(); got != "10001 1 10001 10001 1" {
		t.Errorf("counts %s, want 10001 1 10001 10001 1", got)
	}
}

func TestWaitersAreThoseWhoStillWait(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	must(t, pool, `insert into pawl.waiters (id, lock, holder, since, until) values
		(gen_random_uuid(), 'x', 'late', clock_timestamp() - interval '1 s', clock_timestamp() + interval '1 h'),
		(gen_random_uuid(), 'x', 'early', clock_timestamp() - interval '1 min', clock_timestamp() + interval '1 h'),
		(gen_random_uuid(), 'x', 'gone', clock_timestamp() - interval '1 h', clock_timestamp() - interval '1 s'),
		(gen_random_uuid(), 'y', null, clock_timestamp(), clock_timestamp() + interval '1 h')`,
		`insert into pawl.waiters (id, lock, until) select gen_random_uuid(), 'other ' || n, clock_timestamp() from generate_series(1, 20000) n`, `vacuum analyze pawl.waiters`)
	for lock, want := range map[string]string{"x": "early late", "y": "", "z": ""} {
		all, err := r.Waiters(t.Context(), lock, 0)
		if err != nil || all == nil {
			t.Fatal(all, err)
		}
		var got []string
		for _, w := range all {
			got = append(got, w.Holder)
			if !w.Since.Before(w.Until) || w.Since.Location() != time.UTC {
				t.Errorf("%+v", w)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("waiters of %s: %q, want %q", lock, got, want)
		}
	}
	if one, err := r.Waiters(t.Context(), "x", 1); err != nil || len(one) != 1 || one[0].Holder != "early" {
		t.Errorf("one: %v, %v", one, err)
	}
	if _, err := r.Waiters(t.Context(), "", 0); !is(err, ErrInput) {
		t.Errorf("no lock: %v", err)
	}
	readsLittle(t, pool, 3, waitersSQL, "x", 100)
}
