package lockrepo

import (
	"strings"
	"testing"

	"pawl/internal/pgtest"
)

func names(t *testing.T, r *Repo, f Filter) string {
	t.Helper()
	all, err := r.List(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, i := range all {
		out = append(out, i.Lock)
	}
	return strings.Join(out, " ")
}

func TestAPrefixIsComparedByteByByte(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	for _, lock := range []string{"a", "a%", "a/", "a/1", "a/2", "a/ÿ", "a/\U0010ffff", "a0", "A/1", "b", "a\ud7ff1", "a\ue0001", "\U0010ffff", "\U0010ffffz"} {
		mustAcquire(t, r, lock)
	}
	for _, c := range []struct {
		f    Filter
		want string
	}{
		{Filter{Prefix: "a/"}, "a/ a/1 a/2 a/ÿ a/\U0010ffff"},
		{Filter{Prefix: "a%"}, "a%"},
		{Filter{Prefix: "a/", After: "a/1", Limit: 2}, "a/2 a/ÿ"},
		{Filter{Prefix: "a/", After: "a/\U0010ffff"}, ""},
		{Filter{Prefix: "a/", After: "Z"}, "a/ a/1 a/2 a/ÿ a/\U0010ffff"},
		{Filter{Prefix: "a/\U0010ffff"}, "a/\U0010ffff"},
		{Filter{Prefix: "a\ud7ff"}, "a\ud7ff1"},
		{Filter{Prefix: "\U0010ffff"}, "\U0010ffff \U0010ffffz"},
		{Filter{Prefix: "c"}, ""},
		{Filter{After: "b", Limit: 1}, "\U0010ffff"},
		{Filter{Prefix: "A", State: Held}, "A/1"},
		{Filter{Prefix: "A", State: Free}, ""},
		{Filter{Query: "a/"}, "a/ a/1 a/2 a/ÿ a/\U0010ffff"},
		{Filter{Prefix: "a", Query: "a/1"}, "a/1"},
		{Filter{Prefix: "a/1", Query: "a"}, "a/1"},
		{Filter{Prefix: "a/", Query: "b"}, ""},
		{Filter{Prefix: "a/", Query: "/"}, ""},
	} {
		if got := names(t, r, c.f); got != c.want {
			t.Errorf("%+v: %q, want %q", c.f, got, c.want)
		}
	}
	for _, f := range []Filter{{Prefix: "\xff"}, {After: "a\x00"}, {Query: "\xff"}} {
		if _, err := r.List(t.Context(), f); !is(err, ErrInput) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// A million locks that others made must not be read for a page of ours, even by a plan that knows no prefix.
func TestAPageReadsItsOwnRangeOnly(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	run(t, pool, `with made as (insert into pawl.locks (name, token, incarnation) select format('%s/%s', p, n), 1, 1 from unnest(array['a', 'b', 'c']) p, generate_series(1, 3000) n returning 1)
		select count(*)::text from made`)
	run(t, pool, `insert into pawl.locks (name, token, incarnation) values ('b0', 1, 1)`)
	if _, err := pool.Exec(t.Context(), `vacuum analyze pawl.locks`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f    Filter
		most int
	}{
		{Filter{Prefix: "a/", After: "a/9998"}, 0},
		{Filter{Prefix: "b0"}, 1},
		{Filter{}, 100},
		{Filter{Prefix: "b/", Query: "b/29", Limit: 10}, 10},
		{Filter{State: Free, After: "b/2"}, 100},
	} {
		sql, args, err := c.f.sql()
		if err != nil {
			t.Fatal(err)
		}
		readsLittle(t, pool, c.most, sql, args...)
	}
}
