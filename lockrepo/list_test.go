package lockrepo

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
	} {
		if got := names(t, r, c.f); got != c.want {
			t.Errorf("%+v: %q, want %q", c.f, got, c.want)
		}
	}
	for _, f := range []Filter{{Prefix: "\xff"}, {After: "a\x00"}} {
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
	for _, c := range []struct{ prefix, after, want string }{
		{"a/", "a/9998", "0"},
		{"b0", "", "1"},
	} {
		if got := read(t, pool, c.prefix, c.after); got != c.want {
			t.Errorf("prefix %q after %q read %s rows, want %s", c.prefix, c.after, got, c.want)
		}
	}
}

// read says how many rows of locks a page takes from the table.
func read(t *testing.T, pool *pgxpool.Pool, prefix, after string) string {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	const sql = infoSQL + inPage + below + nameSort
	for _, s := range []string{`deallocate all`, `set local plan_cache_mode = force_generic_plan`, `prepare page as ` + sql} {
		if _, err := tx.Exec(t.Context(), s, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := tx.Query(t.Context(), `explain (analyze, costs off, timing off) execute page ('`+prefix+`', '', '`+after+`', 100, '`+afterAll(prefix)+`')`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := "no such step"
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		if _, rest, ok := strings.Cut(line, "Index Scan using locks_pkey on locks l (actual rows="); ok {
			n, _, _ = strings.Cut(rest, " ")
			n, _, _ = strings.Cut(n, ".")
		}
		if strings.Contains(line, "Rows Removed by Filter") || strings.Contains(line, "Seq Scan on locks") {
			t.Errorf("reads what it doesn't show: %s", line)
		}
	}
	return n
}
