package jobs_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

// asked collects the questions that a History puts to the database.
type asked struct {
	mu   sync.Mutex
	sqls []string
	args [][]any
}

func (a *asked) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	if text := strings.TrimSpace(q.SQL); (strings.HasPrefix(text, "select") || strings.HasPrefix(text, "with")) && strings.Contains(text, "pawl.") {
		a.sqls, a.args = append(a.sqls, q.SQL), append(a.args, q.Args)
	}
	return ctx
}

func (a *asked) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// traced is a History whose questions are collected.
func traced(t *testing.T, pool *pgxpool.Pool) (*jobs.History, *asked) {
	t.Helper()
	a := &asked{}
	cfg := pool.Config()
	cfg.ConnConfig.Tracer, cfg.MaxConns = a, 2
	p, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return jobs.NewHistory(p), a
}

// node is a part of a plan, as EXPLAIN prints it.
type node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Plans    []node  `json:"Plans"`
}

// walk calls fn for each part of the plan that reads a table.
func (n node) walk(fn func(node)) {
	if n.Relation != "" {
		fn(n)
	}
	for _, p := range n.Plans {
		p.walk(fn)
	}
}

// cheap runs one reading and fails the test if a question of it reads a table of history from end to end, or more than
// most of its rows.
func cheap(t *testing.T, pool *pgxpool.Pool, a *asked, name string, most float64, read func() error) {
	t.Helper()
	a.mu.Lock()
	a.sqls, a.args = nil, nil
	a.mu.Unlock()
	if err := read(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.sqls) == 0 {
		t.Errorf("%s asks nothing", name)
	}
	long := []string{"runs", "periods", "tenures", "refusals", "events", "outputs", "checkpoints", "audit", "locks"}
	parts := []string{"effects", "outbox", "artifacts", "artifact_versions"} // which are empty in most of these tests
	for i, sql := range a.sqls {
		explained(t, pool, sql, a.args[i]).walk(func(n node) {
			rows := n.Rows*n.Loops + n.Removed*n.Loops
			scanned := n.Type == "Seq Scan" && (rows > 0 || slices.Contains(long, n.Relation))
			if (slices.Contains(long, n.Relation) || slices.Contains(parts, n.Relation)) && (scanned || rows > most) {
				t.Errorf("%s: %s of %s reads %.0f rows, at most %.0f may be:\n%s", name, n.Type+" "+n.Index, n.Relation, rows, most, sql)
			}
		})
	}
}

func explained(t *testing.T, pool *pgxpool.Pool, sql string, args []any) node {
	t.Helper()
	var text string
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `select set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_bitmapscan', 'off', true)`); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), `explain (analyze, format json) `+sql, args...).Scan(&text)
	})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal([]byte(text), &plans); err != nil || len(plans) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	return plans[0].Plan
}

// long is a database with a long history: 40 jobs, 60,000 runs and periods, 20,000 tenures. Of each job 1 in 100 periods is
// dead, 1 in 100 missed, and the newest is open.
func long(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.New(t)
	for _, sql := range []string{
		`insert into pawl.schedules (job, app, definition, lock, watermark, next_at)
select 'j' || lpad(j::text, 3, '0'), 'app' || j % 2, '{"schedule": "0 * * * *", "runs": 6, "timezone": "Asia/Kolkata"}', 'job:j' || lpad(j::text, 3, '0'), now(), now()
  from generate_series(1, 40) j`,
		`insert into pawl.periods (job, key, lock, state, reason, start_at, end_at, scheduled_at, attempts, token, started_at, ended_at, late_at)
select s.job, to_char(x.at, 'YYYY-MM-DD"T"HH24"+00:00"'), s.lock, x.state, case x.state when 'dead' then 'failed' when 'missed' then 'catch_up' end,
       x.at, x.at + interval '1 h', x.at, 1, x.n, case when x.state <> 'open' then x.at end,
       case when x.state <> 'open' then x.at + interval '1 min' end, x.at + interval '10 min'
  from pawl.schedules s cross join lateral (
    select n, date_trunc('hour', now()) - n * interval '1 h' as at, case when n = 0 then 'open' when n % 100 = 50 then 'dead' when n % 100 = 51 then 'missed' else 'complete' end as state
      from generate_series(0, 1499) n) x`,
		`insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, state, started_at, ended_at)
select gen_random_uuid(), p.job, p.key, 1, 1, p.lock, p.token, 'host' || p.token % 4, case p.state when 'dead' then 'failed' else 'complete' end, p.started_at, p.ended_at
  from pawl.periods p where p.state in ('complete', 'dead')`,
		`insert into pawl.tenures (lock, token, grant_id, holder, acquired_at, ended_at, how)
select lock, token, id, holder, started_at, ended_at, 'released' from pawl.runs where token % 3 = 0`,
		`insert into pawl.refusals (at, lock, token, current, holder, target) select now() - n * interval '1 min', 'job:j' || lpad((n % 40)::text, 3, '0'), n % 1500, n, 'h', 't' from generate_series(1, 20000) n`,
		`insert into pawl.outputs (run, job, head, tail, bytes) select id, job, 'x', '', 1 from pawl.runs`,
		`insert into pawl.checkpoints (job, key, revision, token, operation, value) select job, key, revision, token, gen_random_uuid(), '1' from pawl.periods`,
		`insert into pawl.locks (name, token, incarnation, renewed_at) select 'lock' || n, n, 1, now() from generate_series(1, 10000) n union all select lock, 1500, 1, now() from pawl.schedules`,
		`insert into pawl.events (kind, subject, at, job) select 'late', 'x/' || n, now() - n * interval '1 min', 'j001' from generate_series(1, 20000) n`,
		`analyze`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	return pool
}

// However long the history is, a page reads what it shows.
func TestNoReadingGoesThroughTheHistory(t *testing.T) {
	t.Parallel()
	pool := long(t)
	h, a := traced(t, pool)
	for _, state := range []string{jobs.JobsAll, jobs.JobsTrouble, jobs.JobsPaused, jobs.JobsRetired} {
		cheap(t, pool, a, "jobs "+state, 6000, func() error { _, err := h.JobPage(t.Context(), jobs.JobFilter{State: state}); return err })
	}
	cheap(t, pool, a, "job", 200, func() error { _, err := h.Job(t.Context(), "j001"); return err })
	day := time.Now().Add(-30 * 24 * time.Hour)
	for name, f := range map[string]jobs.RunFilter{
		"all": {}, "from": {From: day, To: day.Add(time.Hour)}, "job": {Job: "j001"}, "key": {Job: "j001", Key: "x"}, "nobody": {Job: "nobody"},
		"job and state": {Job: "j001", State: "failed"}, "job and states": {Job: "j001", States: []string{"failed", "complete", "running"}},
		"running": {State: "running"}, "failed": {State: "failed"}, "lost": {States: []string{"lost", "timed_out"}}, "mixed": {States: []string{"complete", "lost"}},
		"holder": {Holder: "host1"}, "no holder": {Holder: "x"}, "holder and state": {Holder: "host1", State: "lost"}, "job and holder": {Job: "j001", Holder: "host1", Limit: 10},
		"before":    {Before: day.Format(time.RFC3339) + ",00000000-0000-4000-8000-000000000001"},
		"before of": {Job: "j001", Before: day.Format(time.RFC3339) + ",00000000-0000-4000-8000-000000000001"},
	} {
		cheap(t, pool, a, "runs "+name, 800, func() error { _, err := h.Runs(t.Context(), f); return err })
	}
	for name, f := range map[string]jobs.PeriodFilter{
		"job": {Job: "j001"}, "dead": {Job: "j001", State: "dead"}, "several": {Job: "j001", States: []string{"dead", "open", "skipped"}},
		"from": {Job: "j001", From: day, To: day.Add(time.Hour)}, "before": {Job: "j001", Before: day.Format(time.RFC3339) + ",j001,1,x"}, "nobody": {Job: "nobody"},
	} {
		cheap(t, pool, a, "periods "+name, 300, func() error { _, err := h.Periods(t.Context(), f); return err })
	}
	cheap(t, pool, a, "dead of all", 4*800, func() error { _, err := h.Periods(t.Context(), jobs.PeriodFilter{State: "dead"}); return err })
	run, err := h.Runs(t.Context(), jobs.RunFilter{Job: "j001", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	cheap(t, pool, a, "run", 250, func() error { _, err := h.Run(t.Context(), run[0].ID); return err })
	cheap(t, pool, a, "queue", 200, func() error { _, err := h.Queue(t.Context()); return err })
	cheap(t, pool, a, "calendar", 1300, func() error { _, err := h.Calendar(t.Context(), "j001", day, day.Add(400*time.Hour)); return err })
}
