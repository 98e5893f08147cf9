package bench_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgdev"
	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/migrations"
)

var large = flag.Int("large", 500_000, "finished runs in the history; from ten million on, figures over 50 ms are errors")

const (
	largeJobs    = 100
	largeGoal    = 50 * time.Millisecond
	largeBuffers = 6000 // of 8 KiB, for one question: half a million runs are 10,000 at least, and a page of all states reads 700 rows
	largeAll     = 400  // and for each job when a list is about all: it asks each for a hundred rows of up to three kinds
)

// fillSQL makes finished runs $1 to $2 of $3, with their periods and leases: ninety days of a hundred jobs, of which one ended
// long ago. Some periods are dead, missed or skipped.
const fillSQL = `
with x as materialized (
  select n, gen_random_uuid() as id, case when n < $3::bigint / 50 then 'gone' else 'job' || n % $4::bigint end as job,
         now() - interval '90 days' + n * (interval '90 days' / $3::bigint) as at,
         case when n / $4::bigint % 1000 = 1 then 'dead' when n / $4::bigint % 1000 = 2 then 'missed' when n / $4::bigint % 4 = 3 then 'skipped' else 'complete' end as state
    from generate_series($1::bigint, $2::bigint) n
), p as (
  insert into pawl.periods (job, key, lock, state, reason, start_at, end_at, scheduled_at, attempts, run, token, started_at, ended_at)
  select job, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS') || '.' || n || 'Z', 'job:' || job, state,
         case state when 'dead' then 'failed' when 'missed' then 'window' when 'skipped' then 'exit_code' end,
         at, at + interval '1 s', at, 1, id, n, at, at + interval '1 s' from x
), r as (
  insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, state, started_at, ended_at)
  select id, job, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS') || '.' || n || 'Z', 1, 1, 'job:' || job, n, 'host/1/abc',
         case state when 'dead' then 'failed' when 'missed' then 'lost' else state end, at, at + interval '1 s' from x
)
insert into pawl.tenures (lock, token, grant_id, holder, acquired_at, expires_at, ended_at, how)
select 'job:' || job, n, id, 'host/1/abc', at, at + interval '30 s', at + interval '1 s', 'released' from x`

// sent keeps the statements that pass and how long they took.
type sent struct {
	mu    sync.Mutex
	first map[string]statement
	took  map[string][]time.Duration
}

type statement struct {
	sql  string
	args []any
}

type sentKey struct{}

type sentStart struct {
	sql  string
	args []any
	at   time.Time
}

func (s *sent) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, sentKey{}, sentStart{d.SQL, d.Args, time.Now()})
}

func (s *sent) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if q, ok := ctx.Value(sentKey{}).(sentStart); ok {
		s.add(q.sql, q.args, time.Since(q.at))
	}
}

func (s *sent) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return context.WithValue(ctx, sentKey{}, sentStart{at: time.Now()})
}

func (s *sent) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	if q, ok := ctx.Value(sentKey{}).(sentStart); ok { // from the batch's beginning: more than its own
		s.add(d.SQL, d.Args, time.Since(q.at))
	}
}

func (*sent) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (s *sent) add(sql string, args []any, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		s.first, s.took = map[string]statement{}, map[string][]time.Duration{}
	}
	key := sql
	if len(args) == 1 {
		if named, ok := args[0].(pgx.NamedArgs); ok { // one text, several questions
			key += fmt.Sprint("\n", named)
		}
	}
	if _, ok := s.first[key]; !ok {
		s.first[key] = statement{sql, args}
	}
	s.took[key] = append(s.took[key], took)
}

func median(ds []time.Duration) time.Duration {
	ds = slices.Clone(ds)
	slices.Sort(ds)
	return ds[len(ds)/2]
}

// TestALongHistorySlowsNothingDown: planner, start, the loops of a replica and all lists beside ten million finished runs. What
// each statement reads is bounded, and none reads through the history.
func TestALongHistorySlowsNothingDown(t *testing.T) {
	url := roomy(t, *large)
	begun := time.Now()
	fillHistory(t, url, *large)
	t.Logf("%d runs made in %s", *large, time.Since(begun).Round(time.Second))
	other := pgtest.Open(t, url)
	before := scanned(t, other)

	var s sent
	pool := traced(t, url, &s)
	work(t, pool)
	lists(t, jobs.NewHistory(pool))
	pool.Close()
	pgtest.Eventually(t, 10*time.Second, "all connections have gone, and told what they read", func() bool {
		var n int32
		err := other.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend'`).Scan(&n)
		return err == nil && n <= other.Stat().TotalConns()
	})
	for table, n := range scanned(t, other) {
		if n > before[table] {
			t.Errorf("pawl.%s was read from end to end %d times", table, n-before[table])
		}
	}
	explainAll(t, other, &s)
}

// roomy is a migrated database: in memory, as others, or on a disk when it needs room.
func roomy(t *testing.T, runs int) string {
	t.Helper()
	if runs <= 1_000_000 {
		return pgtest.URL(t)
	}
	dir, err := os.MkdirTemp("", "pawl-large-") //nolint:usetesting // t.TempDir is closed to the user that Postgres runs as
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := pgdev.Start(t.Context(), pgdev.Options{Dir: dir, Settings: map[string]string{"max_wal_size": "8GB", "shared_buffers": "256MB"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	pool, err := pgxpool.New(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	return s.URL()
}

// Indexes are built when the rows are there: that takes a third of the time.
const (
	takeIndexesSQL = `
create table public.taken as
select conrelid::regclass::text as of, null as index, conname as name, format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as back
  from pg_constraint where contype = 'p' and conrelid in ('pawl.periods'::regclass, 'pawl.runs'::regclass, 'pawl.tenures'::regclass)
 union all
select null, indexrelid::regclass::text, null, pg_get_indexdef(indexrelid) from pg_index
 where not indisprimary and indrelid in ('pawl.periods'::regclass, 'pawl.runs'::regclass, 'pawl.tenures'::regclass);
do $$ declare x record; begin
  for x in select * from public.taken loop
    execute coalesce('drop index ' || x.index, format('alter table %s drop constraint %I', x.of, x.name));
  end loop;
end $$`

	backSQL = `select back from public.taken`
)

func fillHistory(t *testing.T, url string, total int) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close() // then its figures are there
	do := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	do(takeIndexesSQL)
	do(`alter table pawl.periods set unlogged; alter table pawl.runs set unlogged; alter table pawl.tenures set unlogged`) // faster; read the same
	const batch = 250_000
	for from := 1; from <= total; from += batch {
		do(fillSQL, from, min(from+batch-1, total), total, largeJobs)
	}
	rows, err := pool.Query(t.Context(), backSQL)
	if err != nil {
		t.Fatal(err)
	}
	backs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, back := range backs {
		do(`set maintenance_work_mem = '256MB'; ` + back)
	}
	do(`insert into pawl.schedules (job, app, definition, lock, watermark, retired_at, retired_by) values ('gone', 'default', '{}', 'job:gone', now(), now(), 'somebody')`)
	do(`vacuum analyze pawl.periods, pawl.runs, pawl.tenures, pawl.events`)
}

// scanned is how often each large table was read from end to end.
func scanned(t *testing.T, pool *pgxpool.Pool) map[string]int64 {
	t.Helper()
	rows, err := pool.Query(t.Context(), `select relname, seq_scan from pg_stat_user_tables where relname in ('periods', 'runs')`)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	var table string
	var n int64
	if _, err := pgx.ForEachRow(rows, []any{&table, &n}, func() error { out[table] = n; return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func traced(t *testing.T, url string, s *sent) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns, cfg.ConnConfig.Tracer = 4, s
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// work lets a replica start, plan, run and look around, until each of its jobs has completed a period.
func work(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	r, err := jobs.New(jobs.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	for i := range largeJobs {
		j := jobs.Job{Name: fmt.Sprintf("job%d", i), Schedule: "@every 2s", Func: func(context.Context, *jobs.Run) error { return nil }}
		if err := r.Add(j); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	begun := time.Now()
	go func() { ended <- r.Run(ctx) }()
	pgtest.Eventually(t, 20*time.Second, "it is ready", func() bool { return r.Ready() == nil })
	if _, err := jobs.Trigger(ctx, pool, "pawl-prune", jobs.TriggerConfig{Actor: "test"}); err != nil {
		t.Error(err)
	}
	t.Logf("a replica with %d jobs is ready after %s", largeJobs, time.Since(begun).Round(time.Millisecond))
	pgtest.Eventually(t, 20*time.Second, "the replica has planned, run and looked for what is late", func() bool {
		var n, seen int
		err := pool.QueryRow(ctx, `select (select count(distinct job) from pawl.periods where scheduled_at > now() - interval '1 min' and state = 'complete' and job = any ($1)),
			(select count(*) from pawl.replicas)`, []string{"job1", "job2", "job99", "pawl-prune"}).Scan(&n, &seen)
		return err == nil && n == 4 && seen > 0 && time.Since(begun) > 7*time.Second // the backstop has had its turn
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// lists asks all that people ask.
func lists(t *testing.T, h *jobs.History) {
	t.Helper()
	ask := func(what string, fn func() (int, error)) {
		t.Helper()
		var took []time.Duration
		n := 0
		for range 5 {
			begun := time.Now()
			var err error
			if n, err = fn(); err != nil {
				t.Errorf("%s: %v", what, err)
				return
			}
			took = append(took, time.Since(begun))
		}
		figure(t, fmt.Sprintf("%s: %d", what, n), took, !strings.Contains(what, `""`))
	}
	ask("jobs", func() (int, error) { l, err := h.Jobs(t.Context()); return len(l), err })
	ask("counts of periods", func() (int, error) { l, err := h.PeriodCounts(t.Context()); return len(l), err })
	ask("counts", func() (int, error) { _, err := h.Counts(t.Context()); return 1, err })
	for _, job := range []string{"", "job7", "gone", "nobody"} {
		for _, state := range []string{"", "running", "complete", "failed", "timed_out", "lost", "drained", "cancelled", "skipped"} {
			ask(fmt.Sprintf("runs of %q, %q", job, state), func() (int, error) {
				l, err := h.Runs(t.Context(), jobs.RunFilter{Job: job, State: state})
				return len(l), err
			})
		}
		for _, state := range []string{"", "open", "running", "complete", "dead", "missed", "skipped", "held", "cancelled"} {
			ask(fmt.Sprintf("periods of %q, %q", job, state), func() (int, error) {
				l, err := h.Periods(t.Context(), jobs.PeriodFilter{Job: job, State: state})
				return len(l), err
			})
		}
	}
}

// figure prints a time, and with the whole history holds it against the goal: the shortest, since others use the machine too.
func figure(t *testing.T, what string, took []time.Duration, judged bool) {
	t.Helper()
	best := slices.Min(took)
	t.Logf("%9s  %s (median %s of %d)", best.Round(10*time.Microsecond), what, median(took).Round(10*time.Microsecond), len(took))
	if *large >= 10_000_000 && judged && len(took) > 2 && best > largeGoal {
		t.Errorf("%s takes %s, more than %s", what, best, largeGoal)
	}
}

var (
	explainable = regexp.MustCompile(`(?i)^\s*(select|insert|update|delete|with)\b`)
	wholeTable  = regexp.MustCompile(`"Node Type": "Seq Scan"[^{}]*?"Relation Name": "(periods|runs|tenures)"`)
)
