package browsertest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
	"pawl/lockrepo/keys"
	"pawl/web"
)

// shop is what a test looks at: the pages on a database of its own.
type shop struct {
	URL   string // without a slash at the end, with the base
	Pool  *pgxpool.Pool
	Locks *lockrepo.Repo
	Keys  *keys.Store
	Asked *approvals.Store
	srv   *httptest.Server

	mu    sync.Mutex
	polls []poll
}

// poll is an answer to htmx, which asks again for the page that it is on.
type poll struct {
	path   string
	status int
}

func open(t *testing.T, sql, base string) *shop {
	t.Helper()
	pool := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool, Holder: "worker-9/1/test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(locks.Close)
	s := &shop{Pool: pool, Locks: locks, Keys: keys.New(pool), Asked: approvals.New(pool, nil)}
	store, err := jobs.NewArtifactDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	artifacts, err := jobs.NewArtifacts(jobs.ArtifactsConfig{Pool: pool, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	s.serve(t, web.Config{
		Artifacts: artifacts,
		Locks:     locks, Jobs: jobs.NewHistory(pool), Approvals: s.Asked, Acts: web.NewActs(jobs.NewOperator(pool), s.Asked, s.Keys), API: locks, Keys: s.Keys,
		Version: "test", Database: "orders", BasePath: base,
	})
	return s
}

func (s *shop) serve(t *testing.T, cfg web.Config) {
	t.Helper()
	s.srv = httptest.NewServer(s.noted(web.Handler(cfg)))
	t.Cleanup(s.srv.Close)
	s.URL = s.srv.URL + strings.TrimSuffix(cfg.BasePath, "/")
}

// noted keeps what htmx was answered.
func (s *shop) noted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(rec, r)
		if r.Header.Get("HX-Request") != "" {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.polls = append(s.polls, poll{r.URL.Path, rec.status})
		}
	})
}

type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// polled is how often htmx was answered with a status.
func (s *shop) polled(status int) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.polls {
		if p.status == status {
			n++
		}
	}
	return n
}

// story is the SQL of a shop in which something happened.
func story(t *testing.T) string {
	t.Helper()
	sql, err := os.ReadFile("testdata/story.sql")
	if err != nil {
		t.Fatal(err)
	}
	return string(sql)
}

// key makes a key of a role.
func (s *shop) key(t *testing.T, k keys.Key) string {
	t.Helper()
	k.CreatedBy = "test"
	bearer, _, err := s.Keys.Create(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return bearer
}

// signIn pastes a key into the form, as a person does, and goes where it leads.
func (s *shop) signIn(ctx context.Context, t *testing.T, bearer string) {
	t.Helper()
	goTo(ctx, t, s.URL+"/ui/sign-in")
	do(ctx, t, chromedp.SendKeys(chromedp.CSS(`[name=key]`), bearer))
	press(ctx, t, `main form button`)
}

func (s *shop) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// requests are those that a tab has sent.
type requests struct {
	mu   sync.Mutex
	urls []string
}

func (r *requests) note(ev any) {
	e, ok := ev.(*network.EventRequestWillBeSent)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.urls = append(r.urls, e.Request.URL)
}

// outside are the requests that don't begin so.
func (r *requests) outside(prefix string) (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.urls {
		if !strings.HasPrefix(u, prefix) && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "about:") {
			out = append(out, u)
		}
	}
	return out
}

func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.urls)
}

// elsewhereSite is a page at another origin.
func elsewhereSite(t *testing.T, html string) (url string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(html))
	}))
	t.Cleanup(srv.Close)
	return strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)
}
