package kinds_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/faults"
	"pawl/internal/guardian"
	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/jobs/kinds"
)

// TestMain is also the guardian of commands, and the worker processes that tests kill and stop.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "guardian" {
		os.Exit(guardian.Main(os.Args[2:], os.Stderr))
	}
	os.Exit(faults.Main(m, faults.Kinds{"beats": beats, "steps": steps, "talks": talks, "tell": tell}))
}

func self() []string { return []string{"pawl", "guardian"} }

// shell is a command of a test's.
func shell(text string) kinds.Command {
	return kinds.Command{Guardian: self(), Argv: []kinds.Text{kinds.Plain(text)}, Shell: true}
}

type kind interface{ Func() (jobs.Func, error) }

// job is a daily job that owes one period.
func job(t *testing.T, k kind) jobs.Job {
	t.Helper()
	fn, err := k.Func()
	if err != nil {
		t.Fatal(err)
	}
	return jobs.Job{Name: "x", Schedule: "0 0 * * *", Start: yesterday(), RetryDelay: time.Second, Func: fn}
}

// text is a param with a default.
func text(name, value string) map[string]jobs.Param {
	return map[string]jobs.Param{name: {Type: jobs.ParamString, Default: value}}
}

func yesterday() time.Time { return time.Now().UTC().Truncate(24 * time.Hour).Add(-time.Hour) }

// in is the job in a zone: it owes the day that began there last, at whatever hour the test runs.
func in(t *testing.T, zone string, j jobs.Job) jobs.Job {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	y, m, d := time.Now().In(loc).Date()
	j.Timezone, j.Start = zone, time.Date(y, m, d, 0, 0, 0, 0, loc).Add(-time.Hour)
	return j
}

// lines collects what a runner says.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start starts a runner with a job, and stops it when the test ends or when stop is called.
func start(t *testing.T, cfg jobs.Config, all ...jobs.Job) (stop func() error) {
	t.Helper()
	said := &lines{}
	cfg.Logger = slog.New(slog.NewTextHandler(said, nil))
	r, err := jobs.New(cfg)
	for _, j := range all {
		if err == nil {
			err = r.Add(j)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Run = %v", err)
		}
		if t.Failed() {
			t.Log(said.String())
		}
	})
	return stop
}

// ended is a run with its output, when it has ended.
type ended struct {
	jobs.RunRecord
	output jobs.Output
	period string // state and reason
}

// runs waits until the period of job x has had so many runs, and returns them, the first one first.
func runs(t *testing.T, pool *pgxpool.Pool, n int) (out []ended) {
	t.Helper()
	until(t, pool, n, `select least(count(*), $1) from pawl.runs where ended_at is not null`, n)
	h := jobs.NewHistory(pool)
	records, err := h.Runs(t.Context(), jobs.RunFilter{Job: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		e := ended{RunRecord: r}
		if o, err := h.Output(t.Context(), r.ID); err == nil {
			e.output = o.Output
		}
		err := pool.QueryRow(t.Context(), `select concat_ws(' ', state, reason) from pawl.periods where job = $1 and key = $2`, r.Job, r.Key).Scan(&e.period)
		if err != nil {
			t.Fatal(err)
		}
		out = append([]ended{e}, out...)
	}
	return out
}

// run waits for the only run.
func run(t *testing.T, pool *pgxpool.Pool) ended {
	t.Helper()
	all := runs(t, pool, 1)
	if len(all) != 1 {
		t.Fatalf("%d runs", len(all))
	}
	return all[0]
}

func (e ended) text() string { return string(e.output.Head) + string(e.output.Tail) }

func count(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func until(t *testing.T, pool *pgxpool.Pool, want int, sql string, args ...any) {
	t.Helper()
	pgtest.Eventually(t, 40*time.Second, sql, func() bool { return count(t, pool, sql, args...) == want })
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// template is a Text of a test's: {{name}} is a template.
type template string

// secret is what ${secret} stands for in a template.
const secret = "s3cret-value"

func (x template) Expand(value func(string) string) string {
	return strings.ReplaceAll(x.Show(value), "${secret}", secret)
}

func (x template) Show(value func(string) string) string {
	var b strings.Builder
	rest := string(x)
	for {
		before, after, found := strings.Cut(rest, "{{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, end, _ := strings.Cut(after, "}}")
		b.WriteString(value(name))
		rest = end
	}
}

func mustFail(t *testing.T, k kind, words string) {
	t.Helper()
	if _, err := k.Func(); err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%+v: %v, want %q", k, err, words)
	}
}
