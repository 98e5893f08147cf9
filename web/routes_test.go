package web_test

import (
	"net/http"
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
		"timeout unauthorized forbidden precondition-failed idempotency-key-reused method-not-allowed rate-limited artifact-missing unavailable"
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
	srv, _ := open(t, story, func(c *web.Config) { c.API = struct{ web.API }{} })
	for _, path := range []string{"/", "/ui/locks", "/ui/locks/job:settle", "/ui/nothing", "/docs", "/api/overview", "/healthz", "/readyz", "/metrics", "/nothing", "/problems/not-found"} {
		h := send(t, http.MethodGet, srv.URL+path).header
		policy := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; ") || !strings.Contains(policy, "style-src 'self';") || strings.Contains(policy, "unsafe") ||
			!strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "base-uri 'none'") {
			t.Errorf("%s: policy = %q", path, policy)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" ||
			h.Get("Cross-Origin-Opener-Policy") != "same-origin" || h.Get("Permissions-Policy") == "" {
			t.Errorf("%s lacks a security header: %v", path, h)
		}
	}
}
