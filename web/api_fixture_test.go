package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/lockrepo"
	lockkeys "pawl/lockrepo/keys"
	"pawl/web"
)

// lockAPI is the lock API on a real socket and a real database.
type lockAPI struct {
	url  string
	addr string
	pool *pgxpool.Pool
	keys *lockkeys.Store
	repo *lockrepo.Repo
	log  *logged

	store *jobs.ArtifactDir
}

// logged is a log that may be read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newAPI serves the API on a fresh database.
func newAPI(t *testing.T, change func(*web.Config)) *lockAPI {
	t.Helper()
	return apiOn(t, pgtest.New(t), change)
}

func apiOn(t *testing.T, pool *pgxpool.Pool, change func(*web.Config)) *lockAPI {
	t.Helper()
	a := &lockAPI{pool: pool, keys: lockkeys.New(pool), log: &logged{}}
	log := slog.New(slog.NewTextHandler(a.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if a.repo, err = lockrepo.New(lockrepo.Config{Pool: pool}); err != nil {
		t.Fatal(err)
	}
	if a.store, err = jobs.NewArtifactDir(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.store.Close() })
	published, err := jobs.NewArtifacts(jobs.ArtifactsConfig{Pool: pool, Store: a.store})
	if err != nil {
		t.Fatal(err)
	}
	cfg := web.Config{
		Locks: a.repo, Jobs: jobs.NewHistory(pool), API: a.repo, Artifacts: published, Keys: a.keys, Gatherer: prometheus.NewRegistry(), Version: "test", Logger: log,
	}
	if change != nil {
		change(&cfg)
	}
	h := web.Handler(cfg)
	if cfg.API != nil && cfg.BasePath == "" { // else the routes aren't where the table has them
		h = recorded(h)
	}
	a.addr = listen(t, h, log)
	a.url = "http://" + a.addr
	t.Cleanup(a.repo.Close)
	return a
}

// listen serves h as pawl serve does, with its limits, until the test ends.
func listen(t *testing.T, h http.Handler, log *slog.Logger) (addr string) {
	t.Helper()
	ln, err := web.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- web.ServeListener(ctx, ln, h, log) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// key makes a key and returns its bearer.
func (a *lockAPI) key(t *testing.T, k lockkeys.Key) string {
	t.Helper()
	k.CreatedBy = "test"
	bearer, _, err := a.keys.Create(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return bearer
}

// ask sends one request with a body, as JSON unless a header says otherwise.
func (a *lockAPI) ask(t *testing.T, method, path, body string, header ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return exchange(t, req)
}

// exchange follows no redirect.
func exchange(t *testing.T, req *http.Request) reply {
	t.Helper()
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(b)}
}

// is fails the test unless the answer has this status; an error must be a problem of this slug.
func (r reply) is(t *testing.T, status int, slug string) {
	t.Helper()
	if r.status != status {
		t.Fatalf("answer = %d %s, want %d %s", r.status, r.body, status, slug)
	}
	if slug != "" {
		r.isProblem(t, status, "/problems/"+slug)
	}
}

// lockDoc is what a grant or a look answers.
type lockDoc struct {
	Acquired *bool
	Resource string
	Expires  *string `json:"expires_at"`
	Lock     struct {
		Resource, Owner string
		FencingToken    int64   `json:"fencing_token"`
		TTL             float64 `json:"ttl_seconds"`
		AcquiredAt      string  `json:"acquired_at"`
		RenewedAt       string  `json:"renewed_at"`
		ExpiresAt       string  `json:"expires_at"`
	}
}

func (r reply) doc(t *testing.T) (d lockDoc) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), &d); err != nil {
		t.Fatalf("%v in %d %s", err, r.status, r.body)
	}
	return d
}

// take acquires for owner and returns the token, 0 when another has it.
func (a *lockAPI) take(t *testing.T, lock, body string, header ...string) int64 {
	t.Helper()
	got := a.ask(t, http.MethodPost, "/locks/"+lock, body, header...)
	got.is(t, http.StatusOK, "")
	d := got.doc(t)
	if *d.Acquired != (d.Lock.FencingToken > 0) {
		t.Fatalf("answer = %s", got.body)
	}
	return d.Lock.FencingToken
}

// expired waits until nobody holds the lock x any more.
func (a *lockAPI) expired(t *testing.T) {
	t.Helper()
	eventually(t, "the lease has expired", func() bool {
		return a.ask(t, http.MethodGet, "/locks/x", "").status == http.StatusNotFound
	})
}
