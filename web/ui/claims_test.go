package ui_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// rows are what stands in the cells of a column, of all pages of a list.
func rows(t *testing.T, server, at, column string) (cells []string, pages int) {
	t.Helper()
	for pages = 0; at != "" && pages < 10; pages++ {
		got := send(t, http.MethodGet, server+at)
		if got.status != http.StatusOK {
			t.Fatalf("%s = %d", at, got.status)
		}
		for _, row := range strings.Split(got.body, column)[1:] {
			cell, _, _ := strings.Cut(row, "<")
			cells = append(cells, cell)
		}
		_, rest, _ := strings.Cut(got.body, `There are more: <a href="`)
		at, _, _ = strings.Cut(rest, `" rel="next"`)
		at = html.UnescapeString(at)
	}
	return cells, pages
}

const lostBy = `data-l="Lost by" class="who">`

func TestStaleClaimsAreListedByTheirEnd(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	all, _ := rows(t, srv.URL, "/ui/stale-claims", lostBy)
	if strings.Join(all, " ") != "janitor/640/aa worker-1/4409/77d0" {
		t.Errorf("all = %v", all)
	}
	send(t, http.MethodGet, srv.URL+"/ui/stale-claims").has(t, "Nobody yet", `<span class="num">38s</span>`,
		`href="/ui/refusals?lock=job%3asettle&amp;holder=worker-1%2f4409%2f77d0">1 write refused`)
	if got, _ := rows(t, srv.URL, "/ui/stale-claims?state=open", lostBy); strings.Join(got, " ") != "janitor/640/aa" {
		t.Errorf("not taken over = %v", got)
	}
	if got, _ := rows(t, srv.URL, "/ui/stale-claims?lock="+url.QueryEscape("job:settle"), lostBy); strings.Join(got, " ") != "worker-1/4409/77d0" {
		t.Errorf("of one lock = %v", got)
	}
	send(t, http.MethodGet, srv.URL+"/ui/stale-claims?lock=x").has(t, "No stale claim fits.")
	for _, bad := range []string{"?state=lost", "?before=x", "?lock=" + strings.Repeat("x", 256)} {
		if got := send(t, http.MethodGet, srv.URL+"/ui/stale-claims"+bad); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s = %d, want 422", bad, got.status)
		}
	}
	empty, _ := open(t, "select", nil)
	send(t, http.MethodGet, empty.URL+"/ui/stale-claims").has(t, "No stale claims. Every lease that ended was released by its holder.")
}

func TestStaleClaimsComeInPages(t *testing.T) {
	t.Parallel()
	const many = `
insert into pawl.tenures (lock, token, grant_id, holder, acquired_at, ended_at, how)
select 'x ' || n % 3, n, gen_random_uuid(), 'h' || n, now() - interval '1 h', now() - (n / 7) * interval '1 s', 'taken_over' from generate_series(1, 250) n`
	srv, _ := open(t, many, nil)
	all, pages := rows(t, srv.URL, "/ui/stale-claims", lostBy)
	seen := map[string]bool{}
	for _, h := range all {
		seen[h] = true
	}
	if pages != 3 || len(all) != 250 || len(seen) != 250 {
		t.Errorf("%d pages with %d claims of %d holders, want 3 with 250", pages, len(all), len(seen))
	}
}
