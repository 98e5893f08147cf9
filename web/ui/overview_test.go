package ui_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
	"pawl/web"
)

func TestTheOverviewTellsWhoHoldsWhat(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	got := send(t, http.MethodGet, srv.URL+"/")
	if got.status != http.StatusOK || got.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("page = %d %s", got.status, got.header.Get("Content-Type"))
	}
	got.has(t,
		"worker-2/4411/9f3c", "1795969942·<wbr>676573", ">settle</a>, period 2026-09-16", // a holder and its run
		"12 beats, longest gap 10s", "of 30s", `ago, <strong class="st warn">late`, // its beats
		"Nobody yet", "and counting", "expired", "no refused writes", // a stale claim that nobody has taken
		`<span class="num">38s</span>`, "1 write refused", // and one that was taken over after 38 s
		"pawl_demo.settlement", "insert into pawl_demo.settlement (merchant, day, currency, net) values", "1m\u00a052s", // a refusal
		"<b>2</b> locks held", "<b>1</b> late beat", "<b>1</b> expired lease nobody took", "<b>1</b> write refused, 1\u00a0h", "<b>1</b> period waiting",
		`aria-label="job:settle: token 1795969904·000001, worker-1/4409/77d0, from `, "then 1 write refused; token 1795969942·676573", // the timeline
		"Running 2026-09-16, attempt 2", // a job
		`<a href="/ui/queue">1</a> <small>the first since`,
		`aria-label="Release job:settle"`,
	)
	got.lacks(t, "<img", "zombie", "No sign-in", "No answer.", "log mode", "Let through")
	if strings.Index(got.body, "report:acme/&lt;img src=x onerror=alert(1)&gt;</a>") > strings.Index(got.body, ">job:settle</a> <small>") {
		t.Error("the late holder isn't above the others")
	}
}

func TestEveryFigureLinksToItsList(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	send(t, http.MethodGet, srv.URL+"/").has(t,
		`<a href="/ui/locks?state=held"><b>2</b>`, `<a href="#holders"><b>1</b>`, `<a href="/ui/stale-claims?state=open"><b>1</b>`,
		`<a href="/ui/refusals?kind=refused&amp;since=1h"><b>1</b>`, `<a href="/ui/jobs?state=trouble"><b>0</b>`, `<a href="/ui/queue"><b>1</b>`)
}

func TestAnEmptyDatabaseIsSaidInWords(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, "select", nil)
	send(t, http.MethodGet, srv.URL+"/").has(t, "Nobody holds a lock.", "Nobody held a lock in this time.", "No job is stored yet.",
		"No old holder has tried to write.", "Every lease that ended was released by its holder.", "Nobody has done anything by hand.")
}

func TestALongHistoryIsCutAndSaysSo(t *testing.T) {
	t.Parallel()
	const many = `
insert into pawl.refusals (lock, token, current) select 'job:x', 7, 8 from generate_series(1, 150);
insert into pawl.locks (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
select 'l' || lpad(n::text, 3, '0'), n, 1, gen_random_uuid(), 'h', '1 h', now(), now(), now() + case n when 90 then interval '9 m' else interval '1 h' end from generate_series(1, 150) n`
	srv, _ := open(t, many, nil)
	got := send(t, http.MethodGet, srv.URL+"/")
	got.has(t, "The newest 10.", "all of the last hour", "<b>150</b> writes refused", "These 40. There are more:", ">l090</a>")
	if rows := strings.Count(got.body, `data-l="Too late by"`); rows != 10 {
		t.Errorf("the page has %d refusals, want 10", rows)
	}
	if lanes := strings.Count(got.body, `role="img" aria-label="l`); lanes != 12 {
		t.Errorf("the page has %d lanes, want 12", lanes)
	}
	if len(got.body) > 200<<10 {
		t.Errorf("the page has %d bytes, want 200 KiB at most", len(got.body))
	}
}

// While nothing changes a reader's browser is told so in a few bytes, though the ages on the page go on.
func TestAnUnchangedOverviewIsNotSentAgain(t *testing.T) {
	t.Parallel()
	srv, pool := open(t, story, nil)
	replica := on(t, pool, nil)
	var tag string
	eventually(t, "an unchanged page is a 304, of another replica too", func() bool { // once a minute an idle timeline moves on
		tag = send(t, http.MethodGet, srv.URL+"/").header.Get("ETag")
		again, other := send(t, http.MethodGet, srv.URL+"/", "If-None-Match", tag), send(t, http.MethodGet, replica.URL+"/", "If-None-Match", tag)
		return strings.HasPrefix(tag, `W/"`) && again.status == http.StatusNotModified && again.body == "" && other.status == http.StatusNotModified
	})
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
	n  map[string]int
}

func (c *counting) asked(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[what]++
}

func (c *counting) List(context.Context, lockrepo.Filter) ([]lockrepo.Info, error) {
	c.asked("locks")
	return nil, nil
}

func (c *counting) Spans(context.Context, lockrepo.SpanFilter) ([]lockrepo.Span, error) {
	c.asked("spans")
	return nil, nil
}

func (c *counting) Counts(context.Context) (jobs.Counts, error) {
	c.asked("counts")
	return jobs.Counts{}, nil
}

func TestFiftyViewersAskOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &counting{n: map[string]int{}}
		h := web.Handler(web.Config{Locks: db, Jobs: db})
		look := func() {
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil))
				})
			}
			all.Wait()
		}
		look()
		if got := fmt.Sprint(db.n); got != "map[counts:1 locks:1 spans:1]" {
			t.Fatalf("50 viewers asked %s, want each once", got)
		}
		<-time.After(time.Second)
		look()
		if got := fmt.Sprint(db.n); got != "map[counts:2 locks:2 spans:2]" {
			t.Errorf("a second later they have asked %s, want each twice", got)
		}
	})
}

// somewhat answers nothing but the stale claims.
type somewhat struct{ broken }

func (somewhat) StaleClaims(context.Context, lockrepo.StaleFilter) ([]lockrepo.Tenure, error) {
	return []lockrepo.Tenure{{Lock: "job:settle", Holder: "janitor"}}, nil
}

func TestAPartThatIsNotAnsweredSaysSoAndTheOthersStand(t *testing.T) {
	t.Parallel()
	db := somewhat{broken{err: errors.New("dial 10.1.2.3: connection refused")}}
	srv := serve(t, web.Handler(web.Config{Locks: db, Jobs: db}))
	got := send(t, http.MethodGet, srv.URL+"/")
	if got.status != http.StatusOK || got.header.Get("ETag") == "" {
		t.Errorf("status = %d, want 200", got.status)
	}
	got.has(t, "No answer.", "The rest of the page stands.", "job:settle", "<b>?</b> locks held")
	got.lacks(t, "10.1.2.3", "Nobody holds a lock", "No job is stored", "No old holder has tried", "Nobody has done")
	if n := strings.Count(got.body, "No answer."); n != 10 {
		t.Errorf("%d parts say that they have no answer, want 10", n)
	}
}

func TestADatabaseThatIsAwayMakesTheOverviewA503(t *testing.T) {
	t.Parallel()
	db := broken{err: context.DeadlineExceeded}
	srv := serve(t, web.Handler(web.Config{Locks: db, Jobs: db}))
	got := send(t, http.MethodGet, srv.URL+"/")
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || got.header.Get("ETag") != "" {
		t.Errorf("page = %d, Retry-After %q, ETag %q", got.status, got.header.Get("Retry-After"), got.header.Get("ETag"))
	}
	got.has(t, "The database didn’t answer in time.", "every 2s") // it asks again by itself
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
	began := time.Now()
	got := send(t, http.MethodGet, srv.URL+"/")
	if got.status != http.StatusOK || time.Since(began) > 8*time.Second {
		t.Errorf("status = %d after %v, want 200 in seconds", got.status, time.Since(began))
	}
	got.has(t, "No answer.", "Running 2026-09-16, attempt 2", "1795969942·<wbr>676573", "<b>?</b> writes refused")
}

func TestTheOverviewHasTheLastHoursRefusedWrites(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, `insert into pawl.refusals (at, lock, token, current, target) values
		(now() - interval '25 h', 'job:x', 1, 2, 'public.early'), (now() - interval '61 m', 'job:x', 1, 2, 'public.late'), (now() - interval '59 m', 'job:x', 1, 2, 'public.now')`, nil)
	got := send(t, http.MethodGet, srv.URL+"/")
	got.has(t, "<b>1</b> write refused", "public.now")
	got.lacks(t, "public.late", "public.early")
}

func TestMoreWritersThanAreReadAreSaidToBeMore(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, `insert into pawl.refusals (lock, token, holder) select 'job:x', n, 'w' || n from generate_series(1, 1200) n`, nil)
	send(t, http.MethodGet, srv.URL+"/").has(t, "<b>999&#43;</b> writes refused")
}

// trial is a table in log mode: a script wrote without a lease, and an old holder under its token; one write of the old
// holder's was refused before.
const trial = `
insert into pawl.refusals (lock, token, current, holder, target, statement, passed, nth)
values ('job:x', null, 1795969942676573, null, 'public.ledger', 'UPDATE', true, null),
       ('job:x', 1795969904000001, 1795969942676573, 'worker-1', 'public.ledger', 'INSERT', true, null);
insert into pawl.refusals (lock, token, current, holder, target, statement)
values ('job:x', 1795969904000001, 1795969942676573, 'worker-1', 'public.other', 'INSERT')`

func TestWhatLogModeLetThroughIsNoRefusedWrite(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, trial, nil)
	got := send(t, http.MethodGet, srv.URL+"/")
	got.has(t, "unfenced, let through (log mode)", "stale, let through (log mode)", "They were written.",
		"<b>1</b> write refused", `<span class="muted">none</span>`)
	got.lacks(t, "·<wbr>000000")
	if refused, passed, _ := strings.Cut(got.body, `id="passed"`); strings.Contains(refused, "public.ledger") || strings.Contains(passed, "public.other") {
		t.Error("refused writes and those that passed are mixed up")
	}
}

// Ten thousand writes of a table under trial don't push the one refusal off the page.
func TestWhatLogModeLetThroughHidesNoRefusal(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, trial+`;
insert into pawl.refusals (lock, target, passed, nth) select 'job:x', 'public.ledger', true, null from generate_series(1, 10000)`, nil)
	send(t, http.MethodGet, srv.URL+"/").has(t, "public.other", "<b>1</b> write refused")
}

func TestAForcedLeaseShowsItsSuccessorAndWhoDidIt(t *testing.T) {
	t.Parallel()
	srv, pool := open(t, "select", nil)
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool, Holder: "worker-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	l, err := locks.Acquire(t.Context(), "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	store := approvals.New(pool, nil)
	asking := on(t, pool, func(c *web.Config) { c.Approvals = store })
	ask, err := store.RequestRelease(t.Context(), approvals.Release{
		Lock: "x", Token: l.Token.Seq, Reason: "the holder is stuck", By: approvals.Person{ID: "1", Name: "ann"},
	})
	if err != nil {
		t.Fatal(err)
	}
	send(t, http.MethodGet, asking.URL+"/").has(t, "<b>ann</b> asks to release", "the holder is stuck", fmt.Sprintf(`href="/ui/approvals/%d"`, ask.ID))
	if _, _, err := store.Decide(t.Context(), ask.ID, approvals.Person{ID: "2", Name: "omar", Approver: true}, true, "yes"); err != nil {
		t.Fatal(err)
	}
	if _, err := locks.AcquireRequest(t.Context(), lockrepo.Request{Lock: "x", Holder: "worker-2"}); err != nil {
		t.Fatal(err)
	}
	got := send(t, http.MethodGet, srv.URL+"/")
	got.has(t, "released by force", `<td role="cell" data-l="Taken over by" class="who"><span>worker-2 `, "approved by omar", `class="edge-forced"`)
	got.lacks(t, "Nobody yet", "panel alert", "asks to release")
}

// A database that refuses connections didn't answer late: it can't be reached, and the page says so.
func TestADatabaseThatRefusesConnectionsIsSaidToBeOutOfReach(t *testing.T) {
	t.Parallel()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), fmt.Sprintf("postgres://somebody@%s/shop", ln.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	srv := serve(t, web.Handler(web.Config{Locks: locks, Jobs: jobs.NewHistory(pool)}))
	got := send(t, http.MethodGet, srv.URL+"/")
	got.has(t, "The database can’t be reached.", "<b>?</b> locks held")
	got.lacks(t, "in time", "somebody", ln.Addr().String())
	if got.status != http.StatusServiceUnavailable {
		t.Errorf("status = %d, want 503", got.status)
	}
}

func TestTheOverviewSaysWhatOfTheJobFileIsWrong(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, "select", func(c *web.Config) { c.Wrong = func() []string { return []string{`pawl.yaml:3: job "x": <b>`} } })
	send(t, http.MethodGet, srv.URL+"/").has(t, `pawl.yaml:3: job &#34;x&#34;: &lt;b&gt;`, "The old version of these jobs stays.")
}

func TestAReaderSeesTheOverviewAndNothingToDo(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, func(c *web.Config) { c.ReadOnly = true })
	for _, path := range []string{"/", "/ui/locks/job:settle"} {
		got := send(t, http.MethodGet, srv.URL+path)
		got.has(t, "job:settle", "Read only")
		got.lacks(t, "Release…", "/release", "Review request")
	}
}

// A panic's stack is on the run's own page.
func TestOfAnErrorAJobsRunsHaveTheFirstLine(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story+`;
update pawl.runs set error = E'panic: the ledger is not balanced: ' || repeat('far off ', 12) || E'\ngoroutine 7 [running]:\nmain.settle(0x1)' where state = 'failed'`, nil)
	got := send(t, http.MethodGet, srv.URL+"/ui/jobs/settle")
	got.has(t, "panic: the ledger is not balanced: far off", "120,400 of 200,000", `width="60.2%"`, "from a checkpoint", "timed out", "revision 2", "This run reports no progress", "1m\u00a013s")
	got.lacks(t, "goroutine")
}
