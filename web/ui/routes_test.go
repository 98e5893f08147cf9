package ui_test

import (
	"bytes"
	"html"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"pawl/internal/pgtest"
	"pawl/lockrepo/keys"
	"pawl/web"
	"pawl/web/ui"
)

var link = regexp.MustCompile(`(?:href|src|action|data-hx-get)="([^"]*)"`)

// hasPage tells whether an address has a page; the others' are tested where their pages are.
func hasPage(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	have := strings.Split(path, "/")
	act := strings.HasSuffix(path, "/pause") || strings.HasSuffix(path, "/resume") // of all jobs: no job's name
	for _, r := range ui.Routes() {
		want := strings.Split(r.Pattern, "/")
		fits := len(want) == len(have)
		for i := 0; fits && i < len(want); i++ {
			fits = want[i] == have[i] || strings.HasPrefix(want[i], "{")
		}
		if fits && r.Method == http.MethodGet && (!act || r.Acts) {
			return true
		}
	}
	return !strings.HasPrefix(path, "/ui/")
}

// Every page that a page leads to is asked for, from the first one on.
func TestNothingLeavesTheBasePath(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, func(c *web.Config) { c.BasePath = "a/b/" })
	seen, todo := map[string]bool{}, []string{"/a/b", "/a/b/"}
	for len(todo) > 0 && len(seen) < 200 {
		at := todo[0]
		todo = todo[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		got := send(t, http.MethodGet, srv.URL+at)
		if got.status != http.StatusOK {
			t.Errorf("%s = %d", at, got.status)
		}
		if !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
			continue
		}
		for _, l := range link.FindAllStringSubmatch(got.body, -1) {
			to, _, _ := strings.Cut(html.UnescapeString(l[1]), "#")
			below, ok := strings.CutPrefix(to, "/a/b")
			switch {
			case to == "":
			case !ok || below != "" && below[0] != '/':
				t.Errorf("%s: %q leaves the base path", at, to)
			case hasPage(below):
				todo = append(todo, to)
			}
		}
	}
	if len(seen) < 25 {
		t.Errorf("%d addresses only: %v", len(seen), seen)
	}
	for _, outside := range []string{"/", "/healthz", "/ui/locks", "/a", "/a/bc/healthz"} {
		if got := send(t, http.MethodGet, srv.URL+outside); got.status != http.StatusNotFound {
			t.Errorf("%s = %d, want 404", outside, got.status)
		}
	}
	if got := send(t, http.MethodGet, srv.URL+"/a/b/healthz"); got.status != http.StatusOK {
		t.Errorf("health below the base path = %d", got.status)
	}
}

func TestStaticFilesMayBeKeptForEver(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, "select", nil)
	page := send(t, http.MethodGet, srv.URL+"/")
	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", "woff2": "font/woff2"}
	seen := 0
	for _, l := range link.FindAllStringSubmatch(page.body, -1) {
		for ext, want := range types {
			if strings.HasSuffix(l[1], ext) {
				seen++
				got := send(t, http.MethodGet, srv.URL+l[1])
				if got.status != http.StatusOK || got.header.Get("Content-Type") != want || !strings.Contains(got.header.Get("Cache-Control"), "immutable") {
					t.Errorf("%s = %d %s, %s", l[1], got.status, got.header.Get("Content-Type"), got.header.Get("Cache-Control"))
				}
			}
		}
	}
	if seen < len(types) {
		t.Errorf("the page uses %d static files, want %d at least", seen, len(types))
	}
}

func TestAnInsecurePageSaysSoThereAndInTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	srv, _ := open(t, "select", func(c *web.Config) {
		c.API, c.Insecure, c.Logger = nil, true, slog.New(slog.NewTextHandler(&log, nil))
	})
	got := send(t, http.MethodGet, srv.URL+"/")
	got.has(t, "No sign-in.")
	got.lacks(t, "take and release locks", `href="/docs"`)
	api, _ := open(t, "select", func(c *web.Config) { c.Insecure = true })
	send(t, http.MethodGet, api.URL+"/").has(t, "No sign-in.", "take and release locks", `href="/docs"`)
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "no sign-in") {
		t.Errorf("log = %q, want a warning", log.String())
	}
}

// A page of a name that its owner has lead to loopback is same-origin to a browser: nothing else would stop it.
func TestWithoutAKeyOnlyNamesOfThisMachineAreShownThePages(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	srv := on(t, pool, func(c *web.Config) { c.Keys = keys.New(pool) })
	for host, want := range map[string]int{"evil.example": http.StatusForbidden, "127.0.0.1.evil.example": http.StatusForbidden, "localhost:8399": http.StatusOK, "[::1]": http.StatusOK} {
		for _, path := range []string{"/", "/ui/locks"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			if got := do(t, req); got.status != want {
				t.Errorf("%s at %s = %d, want %d", path, host, got.status, want)
			}
		}
	}
}

func TestAPageIsOnlyLookedAt(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	for _, path := range []string{"/", "/ui/locks/job:settle", "/ui/stale-claims", "/ui/refusals"} {
		if got := send(t, http.MethodPost, srv.URL+path); got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s = %d, Allow %q", path, got.status, got.header.Get("Allow"))
		}
		if got := send(t, http.MethodHead, srv.URL+path); got.status != http.StatusOK || got.body != "" {
			t.Errorf("HEAD %s = %d with %d bytes", path, got.status, len(got.body))
		}
	}
}
