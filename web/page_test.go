package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/web"
)

func TestThePageTellsWhoHoldsWhat(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	got := send(t, http.MethodGet, srv.URL+"/")
	if got.status != http.StatusOK || got.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("page = %d %s", got.status, got.header.Get("Content-Type"))
	}
	got.has(t,
		"worker-2/4411/9f3c", "1795969942·<wbr>676573", "settle, period 2026-09-16", // a holder and its run
		"12 beats, longest gap 10s", "of 30s", "ago, late", // its beats
		"Nobody yet", "and counting", "expired", "no refused writes", // a stale claim that nobody has taken
		`<span class="num">38s</span>`, "1 write refused", // and one that was taken over after 38 s
		"pawl_demo.settlement", "insert into pawl_demo.settlement (merchant, day, currency, net) values", "1m\u00a052s", // a refusal
		"120,400 of 200,000", "60.2%", "from a checkpoint", "timed out", "revision 2", "This run reports no progress", // runs
		"control totals differ: 1200 minor units", "1m\u00a013s",
	)
	got.lacks(t, "<img", "zombie", "No sign-in")
}

func TestAnEmptyDatabaseIsSaidInWords(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, "select", nil)
	send(t, http.MethodGet, srv.URL+"/").has(t, "Nobody holds a lock.", "Nothing has run yet.", "No old holder has tried to write.",
		"Every lease that ended was released by its holder.")
}

func TestALongHistoryIsCutAndSaysSo(t *testing.T) {
	t.Parallel()
	const many = `insert into pawl.refusals (lock, token, current) select 'job:x', 7, 8 from generate_series(1, 150)`
	srv, _ := open(t, many, nil)
	got := send(t, http.MethodGet, srv.URL+"/")
	got.has(t, "The newest 20.", `<a href="/api/overview">up to 100 as JSON</a>`)
	if rows := strings.Count(got.body, `data-l="Too late by"`); rows != 20 {
		t.Errorf("the page has %d refusals, want 20", rows)
	}
}

// While nothing changes a reader's browser is told so in a few bytes, though the ages on the page go on.
func TestAnUnchangedPageIsNotSentAgain(t *testing.T) {
	t.Parallel()
	srv, pool := open(t, story, nil)
	replica := replicaOf(t, pool)
	tag := send(t, http.MethodGet, srv.URL+"/").header.Get("ETag")
	if !strings.HasPrefix(tag, `W/"`) {
		t.Fatalf("ETag = %q, want a weak one", tag)
	}
	if again := send(t, http.MethodGet, srv.URL+"/", "If-None-Match", tag); again.status != http.StatusNotModified || again.body != "" {
		t.Errorf("unchanged = %d with %d bytes, want 304", again.status, len(again.body))
	}
	if other := send(t, http.MethodGet, replica.URL+"/", "If-None-Match", tag); other.status != http.StatusNotModified {
		t.Errorf("another replica, later = %d, want 304: only ages have changed", other.status)
	}
	if _, err := pool.Exec(t.Context(), `insert into pawl.refusals (lock, token) values ('job:x', 1)`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a changed page is sent", func() bool {
		return send(t, http.MethodGet, srv.URL+"/", "If-None-Match", tag).status == http.StatusOK
	})
}

// counting counts the questions; it answers nothing.
type counting struct {
	broken
	mu sync.Mutex
	n  int
}

func (c *counting) List(context.Context, lockrepo.Filter) ([]lockrepo.Info, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return []lockrepo.Info{}, nil
}

func TestFiftyViewersAskOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &counting{}
		h := web.Handler(web.Config{Locks: db, Jobs: db})
		look := func() {
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
				})
			}
			all.Wait()
		}
		look()
		if db.n != 1 {
			t.Fatalf("50 viewers asked %d times, want 1", db.n)
		}
		<-time.After(time.Second)
		look()
		if db.n != 2 {
			t.Errorf("a second later they have asked %d times, want 2", db.n)
		}
	})
}

// somewhat answers nothing but the runs.
type somewhat struct{ broken }

func (somewhat) Runs(context.Context, jobs.RunFilter) ([]jobs.RunRecord, error) {
	return []jobs.RunRecord{{Job: "settle", State: "running"}}, nil
}

func TestAPartThatIsNotAnsweredSaysSoAndTheOthersStand(t *testing.T) {
	t.Parallel()
	db := somewhat{broken{err: errors.New("dial 10.1.2.3: connection refused")}}
	srv := serve(t, web.Handler(web.Config{Locks: db, Jobs: db}))
	got := send(t, http.MethodGet, srv.URL+"/")
	if got.status != http.StatusOK {
		t.Errorf("status = %d, want 200", got.status)
	}
	got.has(t, "No answer.", "The rest of the page stands.", "settle")
	got.lacks(t, "10.1.2.3")
	if n := strings.Count(got.body, "No answer."); n != 3 {
		t.Errorf("%d parts say that they have no answer, want 3", n)
	}
	// A list that is empty because nobody answered would be a lie to a machine.
	send(t, http.MethodGet, srv.URL+"/api/overview").isProblem(t, http.StatusServiceUnavailable, "/problems/unavailable")
}

func TestADatabaseThatIsAwayMakesThePageA503(t *testing.T) {
	t.Parallel()
	db := broken{err: context.DeadlineExceeded}
	srv := serve(t, web.Handler(web.Config{Locks: db, Jobs: db}))
	got := send(t, http.MethodGet, srv.URL+"/")
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || got.header.Get("ETag") != "" {
		t.Errorf("page = %d, Retry-After %q, ETag %q", got.status, got.header.Get("Retry-After"), got.header.Get("ETag"))
	}
	got.has(t, "The database didn’t answer in time.")
	got.lacks(t, "The rest of the page stands.")
}

// Somebody holds a table of the real database: that part gives up, the page comes.
func TestATableThatIsLockedCostsItsPartOnly(t *testing.T) {
	t.Parallel()
	srv, pool := open(t, story, nil)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `lock table pawl.refusals in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	got := send(t, http.MethodGet, srv.URL+"/")
	if got.status != http.StatusOK {
		t.Errorf("status = %d, want 200", got.status)
	}
	got.has(t, "No answer.", "120,400 of 200,000", "1795969942·<wbr>676573")
}
