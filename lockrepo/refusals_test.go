package lockrepo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

// targets lists refusals by what was written to.
func targets(t *testing.T, r *Repo, f RefusalFilter) string {
	t.Helper()
	all, err := r.Refusals(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range all {
		out = append(out, f.Target)
	}
	return strings.Join(out, " ")
}

func TestRefusalsAreFoundByLockHolderKindAndTime(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	if got, err := r.RefusalGroups(t.Context(), time.Time{}, 0); err != nil || got == nil || len(got) != 0 {
		t.Errorf("groups of none: %v, %v", got, err)
	}
	start := time.Date(2026, 9, 16, 10, 0, 0, 0, time.UTC)
	for i, row := range []struct {
		lock, holder string
		token        int
		passed       bool
	}{{"L", "ann", 1, false}, {"M", "ann", 2, false}, {"L", "bob", 3, true}, {"L", "ann", 1, false}, {"M", "bob", 4, false}, {"L", "ann", 1, true}} {
		run(t, pool, `insert into pawl.refusals (at, lock, holder, token, target, passed, nth)
			values ($1, $2, $3, $4::int, $5, $6, case when not $6 then nextval('pawl.refusals_nth') end)`,
			start.Add(time.Duration(i)*time.Minute), row.lock, row.holder, row.token, fmt.Sprint("t", i), row.passed)
	}
	run(t, pool, `insert into pawl.refusals (at, lock, target) values ($1, null, 'unfenced')`, start.Add(time.Hour))
	for _, c := range []struct {
		f    RefusalFilter
		want string
	}{
		{RefusalFilter{}, "unfenced t5 t4 t3 t2 t1 t0"},
		{RefusalFilter{Lock: "L"}, "t5 t3 t2 t0"},
		{RefusalFilter{Lock: "L", Kind: Refused}, "t3 t0"},
		{RefusalFilter{Lock: "L", Kind: Passed}, "t5 t2"},
		{RefusalFilter{Holder: "ann"}, "t5 t3 t1 t0"},
		{RefusalFilter{Holder: "ann", Lock: "M"}, "t1"},
		{RefusalFilter{Holder: "ann", Lock: "L", Kind: Refused}, "t3 t0"},
		{RefusalFilter{Holder: "ann", Limit: 2}, "t5 t3"},
		{RefusalFilter{Holder: "ann", Before: 4}, "t1 t0"},
		{RefusalFilter{Since: start.Add(4 * time.Minute)}, "unfenced t5 t4"},
		{RefusalFilter{Since: start.Add(time.Minute), Holder: "ann", Kind: Refused}, "t3 t1"},
		{RefusalFilter{Since: start.Add(2 * time.Hour)}, ""},
		{RefusalFilter{Holder: "carl"}, ""},
	} {
		if got := targets(t, r, c.f); got != c.want {
			t.Errorf("%+v: %q, want %q", c.f, got, c.want)
		}
	}
	for since, want := range map[time.Time]string{
		{}:                         "//<nil>=1 M/bob/4=1 L/ann/1=2 M/ann/2=1",
		start.Add(2 * time.Minute): "//<nil>=1 M/bob/4=1 L/ann/1=1",
	} {
		groups, err := r.RefusalGroups(t.Context(), since, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, g := range groups {
			token := "<nil>"
			if g.Token != nil {
				token = fmt.Sprint(*g.Token)
			}
			got = append(got, fmt.Sprintf("%s/%s/%s=%d", g.Lock, g.Holder, token, g.Count))
			if g.First.After(g.Last) || g.Count > 1 && (!g.First.Equal(start) || !g.Last.Equal(start.Add(3*time.Minute))) {
				t.Errorf("group %+v", g)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("since %v: %q, want %q", since, s, want)
		}
	}
	if groups, err := r.RefusalGroups(t.Context(), time.Time{}, 1); err != nil || len(groups) != 1 {
		t.Errorf("one group: %v, %v", groups, err)
	}
	if _, err := r.Refusals(t.Context(), RefusalFilter{Holder: "\xff"}); !is(err, ErrInput) {
		t.Errorf("a holder that is no text: %v", err)
	}
}

func TestAPageOfRefusalsReadsNoMoreThanItShows(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	seed(t, pool)
	must(t, pool, `insert into pawl.refusals (at, lock, holder, target) values (clock_timestamp() - interval '1 h', 'rare', 'rare', 'ledger')`,
		`insert into pawl.refusals (lock, token, holder) select 'busy', 29999, 'busy ' || n % 4 from generate_series(1, 20000) n`, `vacuum analyze pawl.refusals`)
	now := time.Now()
	for _, f := range []RefusalFilter{
		{},
		{Before: 100},
		{Kind: Refused},
		{Kind: Passed},
		{Lock: "rare"},
		{Holder: "rare"},
		{Holder: "rare", Kind: Refused},
		{Lock: "rare", Kind: Passed},
		{Lock: "busy"},
		{Holder: "busy 1", Kind: Refused},
		{Since: now.Add(-time.Minute)},
		{Since: now.Add(-time.Hour), Holder: "rare"},
		{Lock: "l/0007", Kind: Refused},
		{Since: now.Add(time.Hour)},
	} {
		sql, args, err := f.sql()
		if err != nil {
			t.Fatal(err)
		}
		readsLittle(t, pool, 120, sql, args...)
	}
	for _, since := range []time.Time{{}, now.Add(-time.Minute)} {
		sql, args := groups(since, 100)
		readsLittle(t, pool, countCap, sql, args...)
	}
}
