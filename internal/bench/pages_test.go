package bench_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
	"pawl/lockrepo/keys"
	"pawl/web"
	"pawl/web/ui"
)

var pageRuns = flag.Int("pages", 100_000, "finished runs behind the pages, with a lock for twenty and a tenure for two; from two million on, figures over 200 ms are errors")

const (
	pagesGoal = 200 * time.Millisecond
	pagesSize = 200 << 10
)

// fillPagesSQL makes $1 locks, of which one in a hundred is held and one in a hundred stale, ten tenures of each, and what
// people and old holders did.
const fillPagesSQL = `
insert into pawl.locks (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
select 'shop/' || lpad(n::text, 7, '0'), 11, 1, case when n % 100 < 2 then gen_random_uuid() end, case when n % 100 < 2 then 'host/' || n % 50 || '/abc' end,
       '30 s', now() - interval '10 min', now() - interval '9 min', case when n % 100 = 0 then now() + interval '1 h' else now() - interval '8 min' end
  from generate_series(1, $1::int) n;
insert into pawl.tenures (lock, token, grant_id, holder, key, acquired_at, expires_at, ended_at, how, successor)
select 'shop/' || lpad(n::text, 7, '0'), k, gen_random_uuid(), 'host/' || n % 50 || '/abc', '', at, at + interval '30 s', at + interval '20 s',
       case when (n + k) % 50 = 0 then 'taken_over' when (n + k) % 500 = 1 then 'forced' when (n + k) % 500 = 2 then 'expired' else 'released' end, k + 1
  from generate_series(1, $1::int) n, generate_series(1, 10) k, lateral (select now() - interval '90 days' + (n * 10 + k) * (interval '90 days' / ($1::int * 10 + 20)) as at) a;
insert into pawl.refusals (at, lock, token, current, holder, late_by, target, statement, passed, nth)
select now() - interval '90 days' + n * (interval '90 days' / ($1::int * 2)), 'shop/' || lpad((1 + n % ($1::int / 10))::text, 7, '0'), 1 + n % 10, 11, 'host/' || n % 50 || '/abc',
       '7 s', 'shop.orders', 'update shop.orders set state = $1', n % 3 = 0, case when n % 3 > 0 then nextval('pawl.refusals_nth') end
  from generate_series(1, $1::int * 2) n;
insert into pawl.audit (at, actor, action, lock, token, job, reason)
select now() - interval '90 days' + n * (interval '90 days' / $1::int), 'key' || n % 20, case n % 4 when 0 then 'force_release' when 1 then 'pause' when 2 then 'rerun' else 'retry' end,
       'shop/' || lpad(n::text, 7, '0'), n, 'job' || n % 100, 'as the runbook says'
  from generate_series(1, $1::int) n;
alter table pawl.approvals disable trigger user;
insert into pawl.approvals (action, lock, token, reason, requested_by_id, requested_by, requested_at, expires_at, state, decided_by_id, decided_by, decided_at)
select 'force_release', 'shop/' || lpad(n::text, 7, '0'), n, 'as the runbook says', 'a', 'kim', now() - n * interval '1 min', now() - n * interval '1 min' + interval '15 min',
       'approved', 'b', 'lee', now() - n * interval '1 min' + interval '5 min'
  from generate_series(1, 10000) n;
alter table pawl.approvals enable trigger user;
insert into pawl.schedules (job, app, definition, lock, watermark, paused_at, paused_by)
select 'job' || n, 'shop', '{"schedule": "0 2 * * *", "period": "day"}', 'job:job' || n, now(), case when n = 99 then now() end, case when n = 99 then 'kim' end from generate_series(0, 99) n;
insert into pawl.effects (job, key, revision, effect, idempotency_key, state, request, run, token, operation, ended_at)
select 'job' || n % 100, 'k' || n, 1, 'e', 'i' || n, x.state, '1', gen_random_uuid(), 1, gen_random_uuid(), case when x.state <> 'uncertain' then now() end
  from generate_series(1, $1::int * 4) n, lateral (select case n % 1000 when 7 then 'uncertain' when 8 then 'failed' else 'done' end as state) x;
insert into pawl.effect_differences (job, idempotency_key, kind, effect) select job, idempotency_key, 'absent', id from pawl.effects where id % 50 = 0;
insert into pawl.schedules (job, app, definition, lock, watermark) values ('mail', 'shop', '{"schedule": "@manual", "overlap": "allow", "outbox": true}', 'job:mail', now());
insert into pawl.outbox (job, period, key, seq, body, at)
select 'mail', 'M' || lpad(n::text, 9, '0'), 'customer ' || n % 500, n / 500, '1', now() - interval '90 d' + n * interval '1 min' from generate_series(1, $1::int * 4) n;
insert into pawl.periods (job, key, lock, origin, state, reason, waits, start_at, end_at, scheduled_at, ended_at)
select job, period, 'job:mail#' || key, 'outbox', x.state, case x.state when 'dead' then 'attempts' end, case x.state when 'dead' then 'decision' when 'open' then 'dead' end, at, at, at, case when x.state <> 'open' then at end
  from pawl.outbox, lateral (select case when key not in ('customer 7', 'customer 8') or seq < $1::int / 125 - 20 then 'complete' when seq = $1::int / 125 - 20 then 'dead' else 'open' end as state) x;
insert into pawl.artifact_versions (name, version, lock, token, hash, size, file, holder, run, job, key, revision, operation, at, superseded_at)
select 'statements/' || lpad(n::text, 6, '0'), v, 'l', v, 'h', 1, 'f' || n || '.' || v, 'h', gen_random_uuid(), 'job' || n % 100, 'k', 1, gen_random_uuid(), now(), case when v < 20 then now() end
  from generate_series(1, $1::int / 5) n, generate_series(1, 20) v;
insert into pawl.artifacts (name, version, lock, token, hash, size, file, holder, at)
select name, version, lock, token, hash, size, file, holder, at from pawl.artifact_versions where superseded_at is null;
insert into pawl.waiters (id, lock, holder, until) select gen_random_uuid(), 'shop/0000100', 'host/' || n || '/abc', now() + interval '1 h' from generate_series(1, 300) n;
analyze`

// places are the pages, by the pattern of their route, as people ask for them beside a long history.
func places(run, key string) map[string][]string {
	return map[string][]string{
		"/":                                       {"/"},
		"/ui/static/{hash}/{file}":                nil,
		"/ui/sign-in":                             nil,
		"/ui/audit.csv":                           nil, // all of it is asked for
		"/ui/locks":                               {"/ui/locks", "/ui/locks?state=held", "/ui/locks?state=stale", "/ui/locks?state=free", "/ui/locks?q=shop/00001", "/ui/locks?q=nobody"},
		"/ui/locks/{name}":                        {"/ui/locks/shop%2F0000100", "/ui/locks/job:job7", "/ui/locks/job:job7?span=7d"},
		"/ui/locks/{name}/release":                {"/ui/locks/shop%2F0000100/release"},
		"/ui/stale-claims":                        {"/ui/stale-claims", "/ui/stale-claims?open=1", "/ui/stale-claims?lock=shop/0000100"},
		"/ui/refusals":                            {"/ui/refusals", "/ui/refusals?lock=shop/0000007", "/ui/refusals?holder=host/7/abc", "/ui/refusals?kind=passed"},
		"/ui/jobs":                                {"/ui/jobs", "/ui/jobs?state=trouble"},
		"/ui/jobs/{job}":                          {"/ui/jobs/job7"},
		"/ui/jobs/pause":                          {"/ui/jobs/pause"},
		"/ui/jobs/resume":                         {"/ui/jobs/resume"},
		"/ui/jobs/{job}/pause":                    {"/ui/jobs/job7/pause"},
		"/ui/jobs/{job}/resume":                   {"/ui/jobs/job99/resume"},
		"/ui/jobs/{job}/run":                      {"/ui/jobs/job7/run"},
		"/ui/jobs/{job}/retry":                    {"/ui/jobs/job7/retry"},
		"/ui/jobs/{job}/backfill":                 {"/ui/jobs/job7/backfill", "/ui/jobs/job7/backfill?from=2026-09-01&to=2026-09-30"},
		"/ui/periods":                             {"/ui/periods", "/ui/periods?state=dead"},
		"/ui/periods/{job}":                       {"/ui/periods/job7", "/ui/periods/job7?state=missed"},
		"/ui/periods/{job}/{key}":                 {"/ui/periods/job7/" + key},
		"/ui/periods/{job}/{key}/rerun":           {"/ui/periods/job7/" + key + "/rerun"},
		"/ui/periods/{job}/{key}/retry":           {"/ui/periods/job7/" + key + "/retry"},
		"/ui/periods/{job}/{key}/cancel":          {"/ui/periods/job7/" + key + "/cancel"},
		"/ui/runs":                                {"/ui/runs", "/ui/runs?state=failed", "/ui/runs?job=job7", "/ui/runs?job=job7&state=lost", "/ui/runs?holder=host/1/abc", "/ui/runs?holder=nobody", "/ui/runs?from=2026-01-01&to=2026-12-31"},
		"/ui/runs/{id}":                           {"/ui/runs/" + run},
		"/ui/queue":                               {"/ui/queue"},
		"/ui/approvals":                           {"/ui/approvals", "/ui/approvals?state=all"},
		"/ui/approvals/{id}":                      {"/ui/approvals/7"},
		"/ui/audit":                               {"/ui/audit", "/ui/audit?actor=key7", "/ui/audit?action=pause", "/ui/audit?lock=shop/0000100", "/ui/audit?job=job7&action=pause"},
		"/ui/keys":                                {"/ui/keys"},
		"/ui/keys/create":                         {"/ui/keys/create"},
		"/ui/keys/{id}/revoke":                    nil, // of a few keys
		"/ui/effects":                             {"/ui/effects", "/ui/effects?state=uncertain", "/ui/effects?state=unmatched", "/ui/effects?job=job7"},
		"/ui/outbox":                              {"/ui/outbox", "/ui/outbox?state=waiting", "/ui/outbox?outbox=mail&key=customer+7"},
		"/ui/outbox/{job}/{key}/retry":            nil, // of one message
		"/ui/outbox/{job}/{key}/drop":             nil,
		"/ui/effects/{id}/decide":                 nil, // of one effect
		"/ui/artifacts":                           {"/ui/artifacts", "/ui/artifacts?q=statements%2F0002", "/ui/artifacts?job=job7"},
		"/ui/artifacts/{name}":                    {"/ui/artifacts/statements%2F000007"},
		"/ui/artifacts/{name}/versions/{version}": nil, // no page
	}
}

// TestEveryPageIsBoundedBesideALongHistory: each page, and the next three of each list, is at most 200 KB and reads none of
// the history from end to end.
func TestEveryPageIsBoundedBesideALongHistory(t *testing.T) {
	url := roomy(t, *pageRuns)
	fillHistory(t, url, *pageRuns)
	other := pgtest.Open(t, url)
	if _, err := other.Exec(t.Context(), strings.ReplaceAll(fillPagesSQL, "$1", fmt.Sprint(*pageRuns/20))); err != nil {
		t.Fatal(err)
	}
	var run, key string
	if err := other.QueryRow(t.Context(), `select id::text, key from pawl.runs where job = 'job7' and state = 'complete' order by started_at desc limit 1`).Scan(&run, &key); err != nil {
		t.Fatal(err)
	}
	var s sent
	p := openPages(t, url, &s)
	table, asked := places(run, key), 0
	for _, r := range ui.Routes() {
		if r.Method != http.MethodGet {
			continue
		}
		all, ok := table[r.Pattern]
		if !ok {
			t.Errorf("%s has no address to ask for beside a long history: add one", r.Pattern)
		}
		for _, at := range all {
			for page := 0; at != "" && page < 4; page++ {
				at = p.ask(t, at)
				asked++
			}
		}
	}
	if asked < 40 {
		t.Errorf("%d pages were asked for", asked)
	}
	explainPages(t, other, &s)
}

// pages serves them on a pool whose statements are kept.
type pages struct{ cfg web.Config }

func openPages(t *testing.T, url string, s *sent) *pages {
	t.Helper()
	pool := traced(t, url, s)
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(locks.Close)
	store := keys.New(pool)
	return &pages{web.Config{
		Locks: locks, Jobs: jobs.NewHistory(pool), Approvals: approvals.New(pool, nil), Acts: web.NewActs(jobs.NewOperator(pool), approvals.New(pool, nil), store), Keys: store,
	}}
}

var nextPage = regexp.MustCompile(`href="([^"]+)" rel="next"`)

// ask holds a page to its bounds and answers where its list goes on.
func (p *pages) ask(t *testing.T, at string) (next string) {
	t.Helper()
	var took []time.Duration
	var body string
	for range 3 {
		h := web.Handler(p.cfg) // another each time: nothing is shared with the one before
		rec := httptest.NewRecorder()
		begun := time.Now()
		h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+at, nil))
		took = append(took, time.Since(begun))
		body = rec.Body.String()
		refused := rec.Code == http.StatusConflict && (strings.HasSuffix(at, "/retry") || strings.HasSuffix(at, "/cancel")) // it is complete
		if rec.Code != http.StatusOK && !refused || strings.Contains(body, "<strong>No answer.</strong>") {
			t.Errorf("%s = %d: %.300s", at, rec.Code, body[max(0, strings.Index(body, "<main")):])
		}
	}
	best := slices.Min(took)
	t.Logf("%9s %6.1f KB  %s", best.Round(10*time.Microsecond), float64(len(body))/1024, at)
	if len(body) > pagesSize {
		t.Errorf("%s has %d KB, want at most %d", at, len(body)>>10, pagesSize>>10)
	}
	if *pageRuns >= 2_000_000 && best > pagesGoal {
		t.Errorf("%s takes %s, more than %s", at, best, pagesGoal)
	}
	if m := nextPage.FindStringSubmatch(body); m != nil {
		return html.UnescapeString(m[1])
	}
	return ""
}

// What grows with time. Not the locks: who holds one may cost reading all of them, since an index would cost every acquire.
var history = regexp.MustCompile(`"Node Type": "Seq Scan"[^{}]*?"Relation Name": "(periods|runs|tenures|refusals|audit|approvals|effects|outbox|artifacts|artifact_versions)"`)

// explainPages looks at the plan of each statement that the pages have sent, as the database makes it by itself.
func explainPages(t *testing.T, pool *pgxpool.Pool, s *sent) {
	t.Helper()
	n := 0
	for _, q := range s.first {
		if !explainable.MatchString(q.sql) || !strings.Contains(q.sql, "pawl.") || strings.Contains(q.sql, ";") {
			continue
		}
		n++
		plan, err := planOf(t.Context(), pool, q)
		if err != nil {
			t.Errorf("%s: not explained: %v", q.sql, err)
		} else if m := history.FindStringSubmatch(plan); m != nil {
			t.Errorf("%s\n%v: reads all of pawl.%s:\n%s", q.sql, q.args, m[1], plan)
		}
	}
	t.Logf("%d statements explained", n)
	if n < 20 {
		t.Errorf("%d statements were seen: is the pattern right?", n)
	}
}

func planOf(ctx context.Context, pool *pgxpool.Pool, q statement) (plan string, err error) {
	tx, err := pool.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadWrite})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, tx.Rollback(context.WithoutCancel(ctx))) }()
	err = tx.QueryRow(ctx, `explain (format json) `+q.sql, q.args...).Scan(&plan)
	return plan, err
}
