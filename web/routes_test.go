package web_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pawl/internal/pgtest"
	"pawl/web"
)

func eventually(t *testing.T, what string, fact func() bool) {
	t.Helper()
	pgtest.Eventually(t, pgtestWait, what, fact)
}

func TestRouterAnswersAreProblemDocuments(t *testing.T) {
	t.Parallel()
	srv := serve(t, web.Handler(web.Config{}))
	for _, path := range []string{"/nothing", "//", "/healthz/", "/a/../healthz", "/static/", "/static/x/app.css", "/api", "/api/overview/", "/metrics"} {
		send(t, http.MethodGet, srv.URL+path).isProblem(t, http.StatusNotFound, "/problems/not-found")
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, "BREW"} {
		got := send(t, method, srv.URL+"/healthz")
		got.isProblem(t, http.StatusMethodNotAllowed, "/problems/method-not-allowed")
		if got.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: Allow = %q, want GET, HEAD", method, got.header.Get("Allow"))
		}
	}
}

func TestHeadAndOptionsWorkWhereGetDoes(t *testing.T) {
	t.Parallel()
	srv := serve(t, web.Handler(web.Config{}))
	if got := send(t, http.MethodHead, srv.URL+"/healthz"); got.status != http.StatusOK || got.body != "" {
		t.Errorf("HEAD = %d with %d bytes, want 200 and none", got.status, len(got.body))
	}
	got := send(t, http.MethodOptions, srv.URL+"/healthz")
	if got.status != http.StatusNoContent || got.header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("OPTIONS = %d, Allow %q", got.status, got.header.Get("Allow"))
	}
}

func TestAProblemsTypeLeadsToAPage(t *testing.T) {
	t.Parallel()
	srv := serve(t, web.Handler(web.Config{}))
	slugs := web.Slugs()
	const promised = "not-found owner-mismatch lease-lost stale-token validation malformed unsupported-media-type too-large header-too-large " +
		"timeout unauthorized forbidden precondition-failed idempotency-key-reused method-not-allowed rate-limited unavailable"
	if got := strings.Join(slugs, " "); got != promised {
		t.Errorf("slugs = %s, want %s", got, promised)
	}
	for _, slug := range append(slugs, "nothing", "Not-Found") {
		got := send(t, http.MethodGet, srv.URL+"/problems/"+slug)
		want := http.StatusOK
		if !slices.Contains(slugs, slug) {
			want = http.StatusNotFound
		}
		if got.status != want || got.header.Get("Content-Type") != "text/plain; charset=utf-8" || len(got.body) < 60 {
			t.Errorf("%s = %d %s %s, want %d and a page", slug, got.status, got.header.Get("Content-Type"), got.body, want)
		}
	}
}

func TestEveryAnswerIsUnderTheStrictPolicy(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	for _, path := range []string{"/", "/api/overview", "/healthz", "/readyz", "/metrics", "/nothing", "/problems/not-found"} {
		h := send(t, http.MethodGet, srv.URL+path).header
		policy := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self';") || strings.Contains(policy, "unsafe") ||
			!strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "base-uri 'none'") {
			t.Errorf("%s: policy = %q", path, policy)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" ||
			h.Get("Cross-Origin-Opener-Policy") != "same-origin" || h.Get("Permissions-Policy") == "" {
			t.Errorf("%s lacks a security header: %v", path, h)
		}
	}
}

// The policy would block it in a browser; here a template that has it is found without one.
func TestTemplatesHaveNothingInline(t *testing.T) {
	t.Parallel()
	inline := regexp.MustCompile(`(?i)\sstyle\s*=|\son[a-z]+\s*=|<style|<script(?:[^>]*\ssrc=)?[^>]*>[^<]|javascript:|http-equiv|https?://`)
	names, err := filepath.Glob("templates/*.html")
	if err != nil || len(names) == 0 {
		t.Fatalf("templates: %v, %v", names, err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := inline.FindString(string(b)); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
}

var link = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

func TestNothingLeavesTheBasePath(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, func(c *web.Config) { c.BasePath = "a/b/" })
	for _, at := range []string{"/a/b", "/a/b/"} {
		got := send(t, http.MethodGet, srv.URL+at)
		if got.status != http.StatusOK {
			t.Fatalf("%s = %d, want the page", at, got.status)
		}
		links := link.FindAllStringSubmatch(got.body, -1)
		if len(links) < 10 {
			t.Fatalf("%s has %d links only", at, len(links))
		}
		for _, l := range links {
			if url := l[1]; !strings.HasPrefix(url, "#") {
				if !strings.HasPrefix(url, "/a/b/") {
					t.Errorf("%s: %q leaves the base path", at, url)
				}
				if got := send(t, http.MethodGet, srv.URL+url); got.status != http.StatusOK {
					t.Errorf("%s = %d", url, got.status)
				}
			}
		}
	}
	for _, outside := range []string{"/", "/healthz", "/a", "/a/bc/healthz"} {
		send(t, http.MethodGet, srv.URL+outside).isProblem(t, http.StatusNotFound, "/a/b/problems/not-found")
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
		c.Insecure, c.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
	})
	send(t, http.MethodGet, srv.URL+"/").has(t, "<strong>No sign-in.</strong>")
	api, _ := open(t, "select", func(c *web.Config) { c.Insecure, c.API = true, struct{ web.API }{} })
	send(t, http.MethodGet, api.URL+"/").has(t, "take and release locks", `href="/docs"`)
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "no sign-in: ") {
		t.Errorf("log = %q, want a warning", log.String())
	}
}
