package lockrepo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

func mustStale(t *testing.T, r *Repo, f StaleFilter) []Tenure {
	t.Helper()
	all, err := r.StaleClaims(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A page goes on where the last one ended, also among many that ended at the same moment, live rows among them.
func TestPagesOfStaleClaimsShowEachOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	if got := mustStale(t, r, StaleFilter{Open: true}); got == nil || len(got) != 0 {
		t.Errorf("of an empty database: %v", got)
	}
	must(t, pool,
		`insert into pawl.tenures (lock, token, grant_id, ended_at, how, successor)
		 select 'l ' || n % 3, 100 + n, gen_random_uuid(), timestamptz '2026-09-16 10:00Z' + n / 8 * interval '1 us', how, case when how = 'taken_over' then 1 end
		   from generate_series(0, 23) n, lateral (select (array['expired', 'taken_over', 'forced', 'released'])[n % 4 + 1] as how) h`,
		`insert into pawl.locks (name, token, incarnation, grant_id, expires_at) select 'live ' || n, n + 1, 1, gen_random_uuid(), timestamptz '2026-09-16 10:00Z' from generate_series(0, 3) n`)
	for _, c := range []struct {
		f    StaleFilter
		want int
	}{
		{StaleFilter{}, 22},
		{StaleFilter{Open: true}, 16},
		{StaleFilter{Lock: "l 1"}, 6},
		{StaleFilter{Lock: "l 1", Open: true}, 4},
		{StaleFilter{Lock: "live 2"}, 1},
		{StaleFilter{Lock: "live 2", Open: true}, 1},
		{StaleFilter{Lock: "nobody's"}, 0},
	} {
		whole := mustStale(t, r, c.f)
		if len(whole) != c.want {
			t.Errorf("%+v: %d claims, want %d", c.f, len(whole), c.want)
		}
		if !slices.IsSortedFunc(whole, func(a, b Tenure) int { return b.EndedAt.Compare(a.EndedAt) }) {
			t.Errorf("%+v: not by their ends", c.f)
		}
		var pages []string
		f := c.f
		f.Limit = 2
		for {
			page := mustStale(t, r, f)
			for _, s := range page {
				pages = append(pages, s.Cursor())
			}
			if len(page) < f.Limit {
				break
			}
			f.Before = page[len(page)-1].Cursor()
		}
		var all []string
		for _, s := range whole {
			all = append(all, s.Cursor())
			if c.f.Open && s.Successor != nil || c.f.Lock != "" && s.Lock != c.f.Lock {
				t.Errorf("%+v shows %+v", c.f, s)
			}
		}
		if !slices.Equal(pages, all) {
			t.Errorf("%+v: by pages\n%s\nat once\n%s", c.f, strings.Join(pages, "\n"), strings.Join(all, "\n"))
		}
	}
}

func TestACursorThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	r := newRepo(t, pgtest.New(t), "a")
	for _, before := range []string{"x", "2026-09-16T10:00:00Z", "2026-09-16T10:00:00Z 7", "2026-09-16T10:00:00Z x y", "2026-09-16T10:00:00Z 7 \xff", " 7 x"} {
		if _, err := r.StaleClaims(t.Context(), StaleFilter{Before: before}); !is(err, ErrInput) {
			t.Errorf("before %q: %v", before, err)
		}
	}
	if _, err := r.StaleClaims(t.Context(), StaleFilter{Before: (Tenure{Lock: "a b  c", Token: 7, EndedAt: time.Now()}).Cursor()}); err != nil {
		t.Error(err)
	}
}

func TestAPageOfStaleClaimsReadsNoMoreThanItShows(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	seed(t, pool)
	must(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name < 'l/0003'`,
		`insert into pawl.tenures (lock, token, grant_id, ended_at, how) values ('rare', 1, gen_random_uuid(), '2026-09-16 10:00Z', 'expired')`, `vacuum analyze pawl.tenures, pawl.locks`)
	r := newRepo(t, pool, "a")
	open := mustStale(t, r, StaleFilter{Open: true})
	if len(open) != 3+1 || open[len(open)-1].Lock != "rare" {
		t.Errorf("open: %d, %+v", len(open), open)
	}
	place := mustStale(t, r, StaleFilter{Limit: 1000})[999].Cursor()
	for _, f := range []StaleFilter{{}, {Before: place}, {Open: true}, {Open: true, Before: place}, {Lock: "rare"}, {Lock: "rare", Open: true}, {Lock: "l/0007", Before: place}, {Lock: "busy"}, {Lock: "busy", Open: true}} {
		sql, args, err := f.sql()
		if err != nil {
			t.Fatal(err)
		}
		readsLittleBut(t, pool, present(), 220, sql, args...) // the refused writes of each, too
	}
	if got := fmt.Sprint(len(mustStale(t, r, StaleFilter{Lock: "l/0007"}))); got != "2" {
		t.Errorf("%s of a lock", got)
	}
}
