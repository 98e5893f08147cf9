package ui_test

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"pawl/lockrepo"
)

const more = `;
insert into pawl.locks (name, token, incarnation) values ('idle', 7, 1);
insert into pawl.waiters (id, lock, holder, until) values (gen_random_uuid(), 'job:settle', 'worker-7/1/x', now() + interval '1 m');
insert into pawl.tenures (lock, token, grant_id, holder, acquired_at, ended_at, how) values
  ('job:settle', 1795969800000001, gen_random_uuid(), null, null, now() - interval '2 h', 'forced'),
  ('gone', 5, gen_random_uuid(), 'worker-5', now() - interval '3 d', now() - interval '2 d', 'released')`

func TestALockTellsWhoHoldsItAndHowItCameToThat(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story+more, nil)
	got := send(t, http.MethodGet, srv.URL+"/ui/locks/job:settle")
	got.has(t, "worker-2/4411/9f3c", "1795969942·<wbr>676573", "of 30s", "12 <small>longest gap 10s</small>", `<a href="/ui/jobs/settle">settle</a> <small>period 2026-09-16`,
		`href="/ui/locks/job:settle/release" aria-label="Release job:settle"`,
		"Leases, last 30 minutes", `aria-label="job:settle: token 1795969904·000001, worker-1/4409/77d0, from `, // the timeline
		"2, the newest first.", "expired, taken over", "released by force", `<span class="muted">not known</span>`, "7m\u00a008s", // ended leases, one of whose start nobody knows
		`href="/ui/refusals?lock=job%3asettle&amp;holder=worker-1%2f4409%2f77d0" aria-label="1 refused writes of worker-1/4409/77d0"`,
		"insert into pawl_demo.settlement (merchant, day, currency, net) values", "worker-7/1/x")
	got.lacks(t, "No answer.")
	late := send(t, http.MethodGet, srv.URL+"/ui/locks/report:acme%2F%3Cimg%20src=x%20onerror=alert(1)%3E")
	late.has(t, "held, late with its beat", "Nobody is known to wait.", "No lease of it has ended yet.", "report:acme/&lt;img src=x onerror=alert(1)&gt;")
	late.lacks(t, "<img")
	stale := send(t, http.MethodGet, srv.URL+"/ui/locks/gdpr:purge")
	stale.has(t, "expired, nobody took it", "janitor/640/aa", "and not taken over")
	stale.has(t, "Last holder", "Was held for", "No other lease of it has ended.")
	stale.lacks(t, "Release…", "Held for", "ended yet")
	send(t, http.MethodGet, srv.URL+"/ui/locks/idle").has(t, "nobody", "Last token", "Nobody held it in this time.")
}

func TestALocksTimelineReachesBackAsFarAsIsAsked(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story+more, nil)
	for span, words := range map[string]string{"": "30 minutes", "30m": "30 minutes", "6h": "6 hours", "24h": "24 hours", "7d": "7 days"} {
		got := send(t, http.MethodGet, srv.URL+"/ui/locks/job:settle?span="+span)
		got.has(t, "Leases, last "+words, `aria-current="true">`+words)
		if forced := strings.Contains(got.body, "released by force at") || strings.Contains(got.body, `class="edge-forced"/></svg>released`); !forced {
			t.Errorf("%s: no legend", span)
		}
		if lanes := strings.Count(got.body, "1795969800·000001, "); (lanes > 0) != (span != "" && span != "30m") {
			t.Errorf("%q: the lease of two hours ago is told %d times", span, lanes)
		}
	}
	if got := send(t, http.MethodGet, srv.URL+"/ui/locks/job:settle?span=1y"); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "choose 30m, 6h, 24h or 7d") {
		t.Errorf("a span that does not exist = %d", got.status)
	}
}

func TestEndedLeasesAreShownInPages(t *testing.T) {
	t.Parallel()
	const many = `
insert into pawl.locks (name, token, incarnation) values ('x', 1000, 1);
insert into pawl.tenures (lock, token, grant_id, holder, acquired_at, ended_at, how)
select 'x', n, gen_random_uuid(), 'h' || n, now() - (300 - n) * interval '1 s', now() - (300 - n) * interval '1 s', 'released' from generate_series(1, 250) n`
	srv, _ := open(t, many, nil)
	seen := map[string]bool{}
	at, pages := "/ui/locks/x", 0
	for ; at != "" && pages < 5; pages++ {
		got := send(t, http.MethodGet, srv.URL+at)
		_, list, _ := strings.Cut(got.body, `id="tenures"`)
		list, _, _ = strings.Cut(list, "</section>")
		for _, row := range strings.Split(list, `data-l="Holder" class="who">`)[1:] {
			holder, _, _ := strings.Cut(row, "<")
			seen[holder] = true
		}
		_, rest, ok := strings.Cut(list, `There are more: <a href="`)
		at, _, _ = strings.Cut(rest, `"`)
		at = strings.ReplaceAll(at, "&amp;", "&")
		if !ok {
			at = ""
		}
	}
	if pages != 3 || len(seen) != 250 || !seen["h1"] {
		t.Errorf("%d pages with %d leases, want 3 with 250", pages, len(seen))
	}
	got := send(t, http.MethodGet, srv.URL+"/ui/locks/x")
	got.has(t, "The newest 100 leases.", "250, the newest first.")
	if len(got.body) > 200<<10 {
		t.Errorf("the page has %d bytes, want 200 KiB at most", len(got.body))
	}
	for _, bad := range []string{"x", "-1", "0", "99999999999999999999"} {
		if got := send(t, http.MethodGet, srv.URL+"/ui/locks/x?before="+bad); got.status != http.StatusUnprocessableEntity {
			t.Errorf("before=%s is %d, want 422", bad, got.status)
		}
	}
}

func TestALockThatIsGoneShowsWhatIsLeftOfIt(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story+more, nil)
	send(t, http.MethodGet, srv.URL+"/ui/locks/gone").has(t, "it was removed", "worker-5")
	if got := send(t, http.MethodGet, srv.URL+"/ui/locks/never"); got.status != http.StatusNotFound {
		t.Errorf("a lock that never was = %d, want 404", got.status)
	}
	got := send(t, http.MethodGet, srv.URL+"/ui/locks/"+strings.Repeat("x", 256))
	if got.status != http.StatusUnprocessableEntity {
		t.Errorf("a name of 256 bytes = %d, want 422", got.status)
	}
}

// Whatever a lock is called, its name is one segment of an address, and the address that a page shows leads to it.
func TestAnyNameIsAnAddress(t *testing.T) {
	t.Parallel()
	srv, pool := open(t, "select", nil)
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool, Holder: "worker-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	names := []string{
		"a/b", "..", ".", "../..", "/", "//", "a//b", "%2F", "%", "a b", "a?b#c", `"><img src=x onerror=alert(1)>`, "\u202egnp.exe", "\u200f",
		"日本語", "release", "a;b=c", "a&b", "+", strings.Repeat("x", 255), strings.Repeat("界", 85),
	}
	for i, name := range names {
		if _, err := locks.AcquireRequest(t.Context(), lockrepo.Request{Lock: name, Holder: fmt.Sprintf("holder-%d.", i)}); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	}
	list := send(t, http.MethodGet, srv.URL+"/ui/locks").body
	for i, name := range names {
		who := fmt.Sprintf("holder-%d.", i)
		row, _, _ := strings.Cut(list, who)
		row = row[strings.LastIndex(row, `<a href="`)+len(`<a href="`):]
		href, _, _ := strings.Cut(row, `"`)
		href = strings.NewReplacer("&amp;", "&", "&#43;", "+", "&#39;", "'").Replace(href)
		if parsed, err := url.Parse(href); err != nil || strings.Count(parsed.EscapedPath(), "/") != 3 || path.Clean(parsed.EscapedPath()) != parsed.EscapedPath() { // a browser resolves dots
			t.Errorf("%q has the address %q, %v", name, href, err)
			continue
		}
		got := raw(t, srv.URL, href)
		if got.status != http.StatusOK || !strings.Contains(got.body, who) || strings.Contains(got.body, "<img") {
			t.Errorf("%q at %s = %d", name, href, got.status)
		}
	}
	for _, at := range []string{"/ui/locks/%2e%2e", "/ui/locks/%2E%2E", "/ui/locks/.%2e"} { // as a browser never would, but others
		got := raw(t, srv.URL, at)
		if got.status != http.StatusOK || !strings.Contains(got.body, "holder-1.") {
			t.Errorf("%s = %d, want the lock called ..", at, got.status)
		}
	}
}

// raw asks for a path as it is written: nobody resolves its dots.
func raw(t *testing.T, server, at string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = "//" + strings.TrimPrefix(server, "http://") + at
	return do(t, req)
}

// A run of long ago has its leases beside it.
func TestARunsTimelineIsOfItsOwnTime(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story+`;
insert into pawl.tenures (lock, token, grant_id, holder, acquired_at, ended_at, how)
values ('job:settle', 1795969903000001, '00000000-0000-4000-8000-000000000003', 'worker-3/4413/c001', now() - interval '25 h', now() - interval '25 h' + interval '73 s', 'released')`, nil)
	send(t, http.MethodGet, srv.URL+"/ui/runs/00000000-0000-4000-8000-000000000003").has(t, `aria-label="job:settle: token 1795969903·000001, worker-3/4413/c001, from `)
}
