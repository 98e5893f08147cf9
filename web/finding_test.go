package web_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/web"
)

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
		"<b>1</b> refused writes, ever", `<span class="muted">none</span>`)
	got.lacks(t, "·<wbr>000000")
	if refused, passed, _ := strings.Cut(got.body, `id="passed"`); strings.Contains(refused, "public.ledger") || strings.Contains(passed, "public.other") {
		t.Error("refused writes and those that passed are mixed up")
	}
	var all struct {
		Refusals, LetThrough []struct {
			Token  *int64
			Passed bool
		}
	}
	body := strings.Replace(send(t, http.MethodGet, srv.URL+"/api/overview").body, "let_through", "LetThrough", 1)
	if decode(t, body, &all); len(all.Refusals) != 1 || len(all.LetThrough) != 2 || all.Refusals[0].Passed || !all.LetThrough[1].Passed || all.LetThrough[1].Token != nil {
		t.Errorf("JSON = %+v", all)
	}
	send(t, http.MethodGet, srv.URL+"/metrics").has(t, "pawl_refusals_total 1\n")
}

// Ten thousand writes of a table under trial don't push the one refusal off the page.
func TestWhatLogModeLetThroughHidesNoRefusal(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, trial+`;
insert into pawl.refusals (lock, target, passed, nth) select 'job:x', 'public.ledger', true, null from generate_series(1, 10000)`, nil)
	send(t, http.MethodGet, srv.URL+"/").has(t, "public.other", "<b>1</b> refused writes, ever")
}

func TestAPageWithoutATrialSaysNothingOfIt(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	send(t, http.MethodGet, srv.URL+"/").lacks(t, "log mode", "Let through")
}

func TestAForcedLeaseShowsItsSuccessor(t *testing.T) {
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
	pgtest.Force(t, pool, "x", l.Token.Seq, "holder is stuck")
	if _, err := locks.AcquireRequest(t.Context(), lockrepo.Request{Lock: "x", Holder: "worker-2"}); err != nil {
		t.Fatal(err)
	}
	got := send(t, http.MethodGet, srv.URL+"/")
	got.has(t, "released by force", `<td role="cell" data-l="Taken over by" class="who"><span>worker-2 `)
	got.lacks(t, "Nobody yet", "panel alert")
}

const panicked = `
insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, state, ended_at, error)
values ('00000000-0000-4000-8000-000000000009', 'repair', '01KB8W7X2V3Q4R5S6T7V8W9XYZ', 1, 1, 'job:repair', 9, 'w/1', 'failed', now(),
        E'panic: the ledger is not balanced: ' || repeat('far off ', 12) || E'\ngoroutine 7 [running]:\nmain.settle(0x1)\n\t/src/settle.go:12 <b>')`

func TestOfAnErrorTheTableHasTheFirstLineAndTheRestOnDemand(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, panicked, nil)
	got := send(t, http.MethodGet, srv.URL+"/")
	summary, _, _ := strings.Cut(got.body, "</summary>")
	if !strings.Contains(summary, "<details><summary>panic: the ledger is not balanced") || strings.Contains(summary, "goroutine") {
		t.Error("the table doesn't begin with the error's first line alone")
	}
	got.has(t, "<pre>panic: the ledger", "main.settle(0x1)", "settle.go:12 &lt;b&gt;</pre>", `title="This run reports no progress">—<`)
	short, _ := open(t, story, nil)
	send(t, http.MethodGet, short.URL+"/").lacks(t, "<details>")
}

// A ULID beside a long error stays on one line, and what the reader has opened stays open.
func TestALongErrorDoesNotBreakTheKeyNorCloseItself(t *testing.T) {
	t.Parallel()
	srv, pool := open(t, panicked, nil)
	ctx := browser(t)
	do(ctx, t, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(srv.URL+"/"))
	if h := get(ctx, t, chromedp.Evaluate[float64](`document.querySelector('[data-l="Period"] > span').getBoundingClientRect().height`)); h > 25 {
		t.Errorf("the key is %v px high: it wraps", h)
	}
	do(ctx, t, chromedp.Click(chromedp.CSS(`details summary`)))
	const more = `update pawl.runs set error = error || ' and more', attempt = 2`
	if _, err := pool.Exec(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	get(ctx, t, wait(`document.querySelector('details pre').textContent.endsWith('and more')`))
	if !get(ctx, t, chromedp.Evaluate[bool](`document.querySelector('details').open`)) {
		t.Error("the renewal closed what the reader had opened")
	}
	noComplaints(ctx, t)
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
	got.has(t, "The database can’t be reached.", "no figures: the database can’t be reached")
	got.lacks(t, "in time", "somebody", ln.Addr().String())
	doc := send(t, http.MethodGet, srv.URL+"/api/overview")
	doc.isProblem(t, http.StatusServiceUnavailable, "/problems/unavailable")
	doc.has(t, "The database can't be reached; ask again.")
}
