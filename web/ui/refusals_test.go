package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const lateBy = `data-l="Too late by" class="n num">`

func TestRefusedWritesAreListedAndGroupedByTheirWriter(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, `
insert into pawl.refusals (at, lock, token, current, holder, target) values (now() - interval '3 h', 'job:old', 4, 5, 'worker-0', 'public.early');`+story+";"+trial, nil)
	got := send(t, http.MethodGet, srv.URL+"/ui/refusals")
	got.has(t, "By writer", "worker-1/4409/77d0", "pawl_demo.settlement", "public.other", "public.early", "stale, let through (log mode)", "unfenced, let through",
		`href="/ui/refusals?kind=refused&amp;lock=job%3asettle&amp;holder=worker-1%2f4409%2f77d0"`)
	for query, want := range map[string]int{
		"": 5, "kind=refused": 3, "kind=passed": 2, "since=1h": 4, "kind=refused&since=1h": 2, "since=24h": 5, "since=7d": 5, "lock=job:x": 3,
		"lock=job:x&kind=refused": 1, "holder=" + url.QueryEscape("worker-1/4409/77d0"): 1, "holder=worker-1&lock=job:x": 2, "holder=nobody": 0,
	} {
		if cells, _ := rows(t, srv.URL, "/ui/refusals?"+query, lateBy); len(cells) != want {
			t.Errorf("%s: %d writes, want %d", query, len(cells), want)
		}
	}
	one := send(t, http.MethodGet, srv.URL+"/ui/refusals?lock=job:x")
	one.has(t, `value="job:x"`)
	one.lacks(t, "By writer")
	send(t, http.MethodGet, srv.URL+"/ui/refusals?kind=passed").lacks(t, "By writer")
	send(t, http.MethodGet, srv.URL+"/ui/refusals?holder=nobody").has(t, "No write fits.")
	for _, bad := range []string{"kind=all", "since=1y", "before=x", "lock=%ff"} {
		if got := send(t, http.MethodGet, srv.URL+"/ui/refusals?"+bad); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s = %d, want 422", bad, got.status)
		}
	}
	empty, _ := open(t, "select", nil)
	send(t, http.MethodGet, empty.URL+"/ui/refusals").has(t, "None. No old holder has tried to write.", "Nobody’s write was refused.")
}

func TestRefusedWritesComeInPagesAndKeepTheirFilter(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, `
insert into pawl.refusals (lock, token, current, holder, target) select 'job:' || n % 2, n, 999, 'w' || n, 't' from generate_series(1, 500) n`, nil)
	cells, pages := rows(t, srv.URL, "/ui/refusals?lock=job:1", lateBy)
	if pages != 3 || len(cells) != 250 {
		t.Errorf("%d pages with %d writes, want 3 with 250", pages, len(cells))
	}
	got := send(t, http.MethodGet, srv.URL+"/ui/refusals")
	got.has(t, "The latest 20 writers.")
	_, rest, _ := strings.Cut(got.body, `There are more: <a href="`)
	next, _, _ := strings.Cut(rest, `"`)
	send(t, http.MethodGet, srv.URL+next).lacks(t, "By writer")
}

// Of an old holder or a write of which little is known the page says so.
func TestARefusalOfWhichLittleIsKnownIsShownToo(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, `insert into pawl.refusals (lock, token, current, holder, late_by, target, statement) values (null, null, null, null, null, null, null)`, nil)
	for _, path := range []string{"/", "/ui/refusals"} {
		send(t, http.MethodGet, srv.URL+path).has(t, "a guarded transaction", "not known")
	}
}
