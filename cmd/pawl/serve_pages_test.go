package main

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"pawl/internal/pgtest"
)

// sendForm posts a form and says where its answer leads, without following it.
func sendForm(t *testing.T, address string, form url.Values, header ...string) (status int, to string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // only the head is looked at
	return resp.StatusCode, resp.Header.Get("Location")
}

const pausedSQL = `select count(*)::text from pawl.schedules where job = 'a' and paused_at is not null`

const aJob = `insert into pawl.schedules (job, app, definition, lock, watermark) values ('a', 'shop', '{"schedule": "@daily", "period": "day", "timezone": "UTC", "runs": 4}', 'l', now()) returning job`

func TestServeBelievesAProxyAndKnowsItsPublicAddress(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	answer(t, db, aJob)
	_, at := serveAPI(t, db, "--proxy-header", "X-Forwarded-User", "--proxy-networks", "127.0.0.0/8", "--proxy-operators", "ann",
		"--trusted-origin", "https://pawl.example.com", "--base-path", "/a/b/")
	pause, form := at+"/a/b/ui/jobs/a/pause", url.Values{"reason": {"the bank is down"}}
	for what, c := range map[string]struct {
		header []string
		want   int
	}{
		"nobody":       {nil, http.StatusUnauthorized},
		"a reader":     {[]string{"X-Forwarded-User", "eve"}, http.StatusForbidden},
		"another site": {[]string{"X-Forwarded-User", "ann", "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
	} {
		if status, _ := sendForm(t, pause, form, c.header...); status != c.want {
			t.Errorf("%s: %d, want %d", what, status, c.want)
		}
	}
	if n := answer(t, db, pausedSQL); n != "0" {
		t.Fatal("it is paused")
	}
	status, to := sendForm(t, pause, form, "X-Forwarded-User", "ann", "Origin", "https://pawl.example.com", "Sec-Fetch-Site", "cross-site")
	if status != http.StatusSeeOther || to != "/a/b/ui/jobs/a" {
		t.Errorf("%d to %s", status, to)
	}
	if n := answer(t, db, pausedSQL); n != "1" {
		t.Error("it isn't paused")
	}
}

func TestServeReadOnlyLetsNobodyAct(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	answer(t, db, aJob)
	_, at := serveAPI(t, db, "--read-only")
	if status, _ := sendForm(t, at+"/ui/jobs/a/pause", url.Values{"reason": {"the bank is down"}}); status != http.StatusForbidden {
		t.Errorf("%d", status)
	}
	if status, body := ask(t, http.MethodGet, at+"/ui/jobs/a", "", ""); status != http.StatusOK || strings.Contains(body, "Pause a…") {
		t.Errorf("%d %s", status, body)
	}
}

// What people look at can't change anything, nor keep the server busy; a URL that wants a server that writes is no obstacle.
func TestThePagesPoolReadsOnlyAndNotForLong(t *testing.T) {
	t.Parallel()
	base, err := pgxpool.New(t.Context(), pgtest.URL(t)+"&target_session_attrs=read-write")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(base.Close)
	g, err := newPage(t.Context(), base, prometheus.NewRegistry(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	var pg *pgconn.PgError
	if _, err := g.pool.Exec(t.Context(), `delete from pawl.audit`); !errors.As(err, &pg) || pg.Code != "25006" {
		t.Errorf("the page's own pool writes: %v", err)
	}
	var most string
	if err := g.pool.QueryRow(t.Context(), `show statement_timeout`).Scan(&most); err != nil || most != "2s" {
		t.Errorf("a statement may take %s, %v", most, err)
	}
	if _, err := g.acts.Exec(t.Context(), `delete from pawl.audit`); err != nil {
		t.Errorf("nobody can act: %v", err)
	}
	if g.cfg.Database == "" || g.cfg.Acts == nil || g.cfg.Approvals == nil {
		t.Errorf("%+v", g.cfg)
	}
}
