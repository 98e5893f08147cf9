package jobs_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

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

// has reports whether one line holds all parts.
func (l *lines) has(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			return true
		}
	}
	return false
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// runner starts a runner with the jobs and stops it when the test ends, or when stop is called.
func start(t *testing.T, cfg jobs.Config, js ...jobs.Job) (r *jobs.Runner, l *lines, stop func() error) {
	t.Helper()
	l = &lines{}
	cfg.Logger, cfg.NoPrune = l.logger(), true
	r, err := jobs.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range js {
		if err := r.Add(j); err != nil {
			t.Fatal(err)
		}
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
			t.Log(l.b.String())
		}
	})
	return r, l, stop
}

// daysAgo is n midnights back, UTC: a daily job that starts there owes n periods.
func daysAgo(n int) time.Time {
	return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -n).Add(time.Hour)
}

// count returns the one number that a query gives.
func count(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// until waits for a count.
func until(t *testing.T, pool *pgxpool.Pool, want int, sql string, args ...any) {
	t.Helper()
	pgtest.Eventually(t, 30*time.Second, sql, func() bool { return count(t, pool, sql, args...) == want })
}

const completeSQL = `select count(*) from pawl.periods where job = $1 and state = 'complete'`

func nothing(context.Context, *jobs.Run) error { return nil }
