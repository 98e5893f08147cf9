package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"pawl/internal/pgdev"
	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/migrations"
)

const (
	benchLocks   = 8000
	benchWorkers = 100
)

// BenchmarkRuns compares full no-op runs (start, function, end with marker and release in one commit) with raw River
// no-op jobs, with the same settings and in the same run, in pairs of random order. River's ratio is 1.
func BenchmarkRuns(b *testing.B) {
	pool := durable(b)
	b.Run("one period a lock", func(b *testing.B) { pairs(b, pool, benchLocks, 1) })
	b.Run("ten periods a lock", func(b *testing.B) { pairs(b, pool, benchLocks/10, 10) })
}

func pairs(b *testing.B, pool *pgxpool.Pool, locks, depth int) {
	var ratios []float64
	var ours, rivers time.Duration
	for b.Loop() {
		var raw, full time.Duration
		both := []func(){func() { raw = rawRiver(b, pool, locks*depth) }, func() { full = fullRuns(b, pool, locks, depth) }}
		if rand.IntN(2) == 0 {
			slices.Reverse(both)
		}
		both[0]()
		both[1]()
		ratios, ours, rivers = append(ratios, raw.Seconds()/full.Seconds()), ours+full, rivers+raw
	}
	slices.Sort(ratios)
	n := float64(locks * depth * len(ratios))
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(ratios[0], "ratio-min")
	b.ReportMetric(ratios[len(ratios)-1], "ratio-max")
	b.ReportMetric(n/ours.Seconds(), "runs/s")
	b.ReportMetric(n/rivers.Seconds(), "river-jobs/s")
	b.ReportMetric(0, "ns/op")
}

// durable is a server that flushes its commits to a disk, as users' do.
func durable(b *testing.B) *pgxpool.Pool {
	b.Helper()
	dir, err := os.MkdirTemp("", "pawl-bench-") //nolint:usetesting // b.TempDir is closed to the user that Postgres runs as
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := pgdev.Start(context.Background(), pgdev.Options{Dir: dir, Durable: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Stop(); err != nil {
			b.Error(err)
		}
	})
	cfg, err := pgxpool.ParseConfig(s.URL())
	if err != nil {
		b.Fatal(err)
	}
	cfg.MaxConns = 20
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if _, err := migrations.Up(context.Background(), pool); err != nil {
		b.Fatal(err)
	}
	return pool
}

func mustExec(b *testing.B, pool *pgxpool.Pool, sql string, args ...any) {
	b.Helper()
	if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
}

// clean forgets the round before.
func clean(b *testing.B, pool *pgxpool.Pool) {
	mustExec(b, pool, `truncate pawl.periods, pawl.runs, pawl.tenures, pawl.lanes, pawl.river_job, pawl.schedules`)
	mustExec(b, pool, `insert into pawl.locks (name, token, incarnation, renewed_at) select 'lock ' || l, 1, pawl.incarnation(), now()
		from generate_series(1, $1::int) l on conflict do nothing`, benchLocks) // as on every day but the first
	mustExec(b, pool, `vacuum analyze pawl.locks`)
	mustExec(b, pool, `checkpoint`)
}

type raw struct{}

func (raw) Kind() string { return "raw" }

// rawRiver works n no-op jobs with River alone, with the settings that the runner uses.
func rawRiver(b *testing.B, pool *pgxpool.Pool, n int) time.Duration {
	clean(b, pool)
	mustExec(b, pool, `insert into pawl.river_job (state, queue, kind, args, max_attempts) select 'available', 'pawl', 'raw', '{}', 1 from generate_series(1, $1::int)`, n)
	mustExec(b, pool, `vacuum analyze pawl.river_job`)
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan struct{})
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[raw]) error {
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	}))
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Schema: "pawl", Workers: workers, Queues: map[string]river.QueueConfig{"pawl": {MaxWorkers: benchWorkers}},
		FetchCooldown: 5 * time.Millisecond, FetchPollInterval: 250 * time.Millisecond, JobTimeout: -1,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if err := client.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	<-done
	took := time.Since(start)
	if err := client.Stop(context.Background()); err != nil {
		b.Fatal(err)
	}
	return took
}

// fullRuns works off locks × depth periods.
func fullRuns(b *testing.B, pool *pgxpool.Pool, locks, depth int) time.Duration {
	clean(b, pool)
	mustExec(b, pool, `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at)
		select 'noop', l || '/' || d, 'lock ' || l, now(), now(), now() - interval '1 day' + d * interval '1 min'
		  from generate_series(1, $1::int) l, generate_series(1, $2::int) d`, locks, depth)
	mustExec(b, pool, `select pawl.advance(array_agg(distinct lock)) from pawl.periods`)
	mustExec(b, pool, `vacuum analyze pawl.periods, pawl.river_job, pawl.lanes`)
	r, err := jobs.New(jobs.Config{Pool: pool, Concurrency: benchWorkers})
	if err != nil {
		b.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(locks * depth))
	done := make(chan struct{})
	err = r.Add(jobs.Job{Name: "noop", Schedule: "@manual", Func: func(context.Context, *jobs.Run) error {
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	start := time.Now()
	go func() { ended <- r.Run(ctx) }()
	<-done
	pgtest.Eventually(b, time.Minute, "all periods are complete", func() bool {
		var open bool
		err := pool.QueryRow(ctx, `select exists (select from pawl.periods where ended_at is null)`).Scan(&open)
		return err == nil && !open
	})
	took := time.Since(start)
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(fmt.Errorf("Run: %w", err))
	}
	return took
}
