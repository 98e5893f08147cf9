package bench_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"pawl/jobs"
)

const (
	benchRuns    = 8000
	benchWorkers = 100
)

// BenchmarkRuns: full no-op runs (start, function, end with marker and release in one commit), against raw River no-op
// jobs with the same settings.
func BenchmarkRuns(b *testing.B) {
	pool := durable(b, 20)
	noop := func(context.Context, *jobs.Run) error { return nil }
	own := func(ctx context.Context, run *jobs.Run) error {
		return run.Complete(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, plainSQL, 1+int(run.Token().Seq%90))
			return err
		})
	}
	for _, c := range []struct {
		name  string
		depth int
		fn    jobs.Func
	}{{"one period a lock", 1, noop}, {"ten periods a lock", 10, noop}, {"one period a lock, a transaction of its own", 1, own}} {
		b.Run(c.name, func(b *testing.B) {
			var floor, ours cost
			pairs(b, floor.of(b, pool, func() time.Duration { return rawRiver(b, pool, benchRuns) }),
				ours.of(b, pool, func() time.Duration { return fullRuns(b, pool, benchRuns/c.depth, c.depth, c.fn) }))
			floor.report(b, "floor")
			ours.report(b, "ours")
		})
	}
}

// cost is what a side uses of the machine, set-up and all.
type cost struct {
	client, server time.Duration
	runs           int
}

func (c *cost) of(b *testing.B, pool *pgxpool.Pool, do func() time.Duration) func() time.Duration {
	b.Helper()
	return func() time.Duration {
		client, server := ownCPU(), serverCPU(postmaster(b, pool))
		took := do()
		c.client, c.server, c.runs = c.client+ownCPU()-client, c.server+serverCPU(postmaster(b, pool))-server, c.runs+benchRuns
		return took
	}
}

func (c *cost) report(b *testing.B, who string) {
	b.Helper()
	b.ReportMetric(float64(c.client.Microseconds())/float64(c.runs), who+"-client-µs/run")
	b.ReportMetric(float64(c.server.Microseconds())/float64(c.runs), who+"-server-µs/run")
}

// clean forgets the round before. The locks stay, as on every day but the first.
func clean(b *testing.B, pool *pgxpool.Pool) {
	b.Helper()
	mustExec(b, pool, `truncate pawl.periods, pawl.runs, pawl.tenures, pawl.lanes, pawl.river_job, pawl.schedules`)
	mustExec(b, pool, `insert into pawl.locks (name, token, incarnation, renewed_at) select 'lock ' || l, 1, pawl.incarnation(), now()
		from generate_series(1, $1::int) l on conflict do nothing`, benchRuns)
	mustExec(b, pool, `vacuum analyze pawl.locks`)
	mustExec(b, pool, `checkpoint`)
}

type raw struct{}

func (raw) Kind() string { return "raw" }

// rawRiver works n no-op jobs with River alone.
func rawRiver(b *testing.B, pool *pgxpool.Pool, n int) time.Duration {
	b.Helper()
	clean(b, pool)
	mustExec(b, pool, `insert into pawl.river_job (state, queue, kind, args, max_attempts)
		select 'available', 'pawl', 'raw', '{}', 1 from generate_series(1, $1::int)`, n)
	mustExec(b, pool, `vacuum analyze pawl.river_job`)
	var left atomic.Int64
	left.Store(int64(n))
	var first firstTime
	done := make(chan struct{})
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[raw]) error {
		first.now()
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	}))
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Schema: "pawl", Workers: workers, Queues: map[string]river.QueueConfig{"pawl": {MaxWorkers: benchWorkers}},
		FetchCooldown: 5 * time.Millisecond, FetchPollInterval: 250 * time.Millisecond, JobTimeout: -1, // as the runner
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := client.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	<-done
	took := first.since()
	if err := client.Stop(context.Background()); err != nil {
		b.Fatal(err)
	}
	return took
}

// owe makes locks × depth periods and their deliveries.
func owe(b *testing.B, pool *pgxpool.Pool, locks, depth int) {
	b.Helper()
	clean(b, pool)
	mustExec(b, pool, `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at)
		select 'noop', l || '/' || d, 'lock ' || l, now(), now(), now() - interval '1 day' + d * interval '1 min'
		  from generate_series(1, $1::int) l, generate_series(1, $2::int) d`, locks, depth)
	mustExec(b, pool, `select pawl.advance(array_agg(distinct lock)) from pawl.periods`)
	mustExec(b, pool, `vacuum analyze pawl.periods, pawl.river_job, pawl.lanes`)
}

// fullRuns works off locks × depth periods, from the first start to the last end.
func fullRuns(b *testing.B, pool *pgxpool.Pool, locks, depth int, fn jobs.Func) time.Duration {
	b.Helper()
	owe(b, pool, locks, depth)
	var first firstTime
	var left atomic.Int64
	left.Store(int64(locks * depth))
	last := make(chan struct{})
	stop := running(b, pool, func(ctx context.Context, run *jobs.Run) error {
		first.now()
		if left.Add(-1) == 0 {
			close(last)
		}
		return fn(ctx, run)
	})
	defer stop()
	<-last // not asked before: a snapshot that is held all the time keeps the server from tidying up
	for open := true; open; {
		if err := pool.QueryRow(context.Background(), `select exists (select from pawl.periods where ended_at is null)`).Scan(&open); err != nil {
			b.Fatal(err)
		}
	}
	return first.since()
}

// firstTime is when it was asked first: both sides are timed from their first line of work on.
type firstTime struct{ at atomic.Pointer[time.Time] }

func (f *firstTime) now() {
	if f.at.Load() == nil {
		now := time.Now()
		f.at.CompareAndSwap(nil, &now)
	}
}

func (f *firstTime) since() time.Duration { return time.Since(*f.at.Load()) }

// running starts a runner of the job noop, and returns what stops it.
func running(b *testing.B, pool *pgxpool.Pool, fn jobs.Func) (stop func()) {
	b.Helper()
	r, err := jobs.New(jobs.Config{Pool: pool, Concurrency: benchWorkers})
	if err != nil {
		b.Fatal(err)
	}
	if err := r.Add(jobs.Job{Name: "noop", Schedule: "@manual", Func: fn}); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHandOver: from the end of one function to the first line of the next, in a backlog of 700 periods.
func BenchmarkHandOver(b *testing.B) {
	pool := durable(b, 20)
	for b.Loop() {
		var gaps []time.Duration
		var last time.Time
		owe(b, pool, 1, 700)
		done := make(chan struct{})
		stop := running(b, pool, func(context.Context, *jobs.Run) error {
			if !last.IsZero() {
				gaps = append(gaps, time.Since(last))
			}
			if last = time.Now(); len(gaps) == 699 {
				close(done)
			}
			return nil
		})
		<-done
		stop()
		report(b, gaps, "handover")
	}
}
