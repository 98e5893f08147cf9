package ui_test

import (
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
	"pawl/web"
)

// story is a database in which something happened: two live leases, one of them late with its beat; a stale claim
// that was taken over and whose old holder tried to write; a stale claim that nobody has taken; five runs.
const story = `
insert into pawl.locks (name, token, incarnation, grant_id, holder, key, ttl, acquired_at, renewed_at, expires_at, beats, longest_gap)
values ('job:settle', 1795969942676573, 1, gen_random_uuid(), 'worker-2/4411/9f3c', '2026-09-16', '30 s', now() - interval '134 s',
       now() - interval '4 s', now() + interval '26 s', 12, '10.2 s'),
       ('report:acme/<img src=x onerror=alert(1)>', 1795969942000007, 1, gen_random_uuid(), 'worker-1/77/01ab', null, '45 s',
       now() - interval '22 m', now() - interval '34 s', now() + interval '11 s', 88, '15.1 s'),
       ('gdpr:purge', 1795969941000012, 1, gen_random_uuid(), 'janitor/640/aa', null, '30 s', now() - interval '9 m', now() - interval '165 s',
       now() - interval '135 s', 20, '10 s');
insert into pawl.tenures (lock, token, grant_id, holder, key, acquired_at, ended_at, how, successor, beats, longest_gap)
values ('job:settle', 1795969904000001, gen_random_uuid(), 'worker-1/4409/77d0', '2026-09-16', now() - interval '10 m',
       now() - interval '172 s', 'taken_over', 1795969942676573, 3, '10 s');
insert into pawl.refusals (at, lock, token, current, holder, late_by, target, statement)
values (now() - interval '60 s', 'job:settle', 1795969904000001, 1795969942676573, 'worker-1/4409/77d0', '112 s', 'pawl_demo.settlement',
       'insert into pawl_demo.settlement (merchant, day, currency, net)
         values ($1, $2, $3, $4)');
insert into pawl.schedules (job, app, definition, lock, watermark) values
  ('settle', 'shop', '{"schedule": "0 2 * * *", "period": "day"}', 'job:settle', now());
insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, attempts, run, token)
values ('settle', '2026-09-16', 'job:settle', 'running', '2026-09-16Z', '2026-09-17Z', now(), 2, '00000000-0000-4000-8000-000000000005', 1795969942676573),
       ('settle', '2026-09-17', 'job:settle', 'open', '2026-09-17Z', '2026-09-18Z', now(), 0, null, null);
insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, state, started_at, ended_at, done, total, error, resumed)
values ('00000000-0000-4000-8000-000000000005', 'settle', '2026-09-16', 1, 2, 'job:settle', 1795969942676573, 'worker-2/4411/9f3c',
       'running', now() - interval '134 s', null, 120400, 200000, null, true),
       ('00000000-0000-4000-8000-000000000004', 'settle', '2026-09-16', 1, 1, 'job:settle', 1795969904000001, 'worker-1/4409/77d0',
       'lost', now() - interval '10 m', now() - interval '170 s', 81200, 200000, 'lease expired', false),
       ('00000000-0000-4000-8000-000000000003', 'settle', '2026-09-15', 1, 1, 'job:settle', 1795969903000001, 'worker-3/4413/c001',
       'complete', now() - interval '25 h', now() - interval '25 h' + interval '73 s', 200000, 200000, null, false),
       ('00000000-0000-4000-8000-000000000002', 'settle', '2026-09-14', 2, 1, 'job:settle', 1795969902000001, 'worker-3/4413/c001',
       'timed_out', now() - interval '26 h', now() - interval '25 h', 12, null, 'run took longer than its timeout of 1h0m0s', false),
       ('00000000-0000-4000-8000-000000000001', 'settle', '2026-09-14', 1, 1, 'job:settle', 1795969901000001, 'worker-3/4413/c001',
       'failed', now() - interval '27 h', now() - interval '27 h' + interval '3 s', null, null, 'control totals differ: 1200 minor units', false);
insert into pawl.river_job (state, queue, kind, args, max_attempts, scheduled_at)
values ('available', 'pawl', 'pawl.settle', '{}', 1, now() - interval '20 s')`

// open is a page on a fresh database in which sql has been run.
func open(t *testing.T, sql string, change func(*web.Config)) (*httptest.Server, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	return on(t, pool, change), pool
}

func on(t *testing.T, pool *pgxpool.Pool, change func(*web.Config)) *httptest.Server {
	t.Helper()
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(locks.Close)
	history := jobs.NewHistory(pool)
	cfg := web.Config{
		Locks: locks, Jobs: history, Approvals: approvals.New(pool, nil), Acts: web.NewActs(jobs.NewOperator(pool), approvals.New(pool, nil), nil), API: locks, Version: "test", Database: "orders",
	}
	if change != nil {
		change(&cfg)
	}
	return serve(t, web.Handler(cfg))
}

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

// reply is an answer that has been read.
type reply struct {
	status int
	header http.Header
	body   string
}

// send asks once; it follows no redirect, since none is ever sent.
func send(t *testing.T, method, url string, header ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return do(t, req)
}

func do(t *testing.T, req *http.Request) reply {
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

// has fails the test for each text that the body lacks.
func (r reply) has(t *testing.T, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if !strings.Contains(r.body, s) {
			t.Errorf("the answer lacks %q", s)
		}
	}
}

// lacks fails the test for each text that the body has.
func (r reply) lacks(t *testing.T, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if strings.Contains(r.body, s) {
			t.Errorf("the answer has %q", s)
		}
	}
}

func eventually(t *testing.T, what string, fact func() bool) {
	t.Helper()
	pgtest.Eventually(t, 10*time.Second, what, fact)
}

// between is what stands between two texts.
func between(t *testing.T, body, before, after string) string {
	t.Helper()
	_, rest, found := strings.Cut(body, before)
	inner, _, ok := strings.Cut(rest, after)
	if !found || !ok {
		t.Fatalf("nothing between %q and %q", before, after)
	}
	return inner
}

func unescape(attribute string) string { return html.UnescapeString(attribute) }
