package bench_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/faults"
	"pawl/jobs"
)

const crashes = 20

func TestMain(m *testing.M) {
	kinds := faults.Kinds{"holder": func(_ context.Context, pool *pgxpool.Pool) ([]jobs.Job, error) {
		return []jobs.Job{{
			Name: "hold", Schedule: "@every 1h", Start: time.Now().Truncate(time.Hour).Add(-time.Hour), TTL: 2 * time.Second, MaxRetries: 1000,
			Func: func(ctx context.Context, run *jobs.Run) error {
				_, err := pool.Exec(ctx, `insert into begun values ($1, $2, clock_timestamp())`, os.Getpid(), run.Attempt)
				<-ctx.Done()
				return err
			},
		}}, nil
	}}
	for pass := range 2*shardPairs + 1 {
		kinds[fmt.Sprintf("shards-%d", pass)] = sharded(pass)
	}
	os.Exit(faults.Main(m, kinds))
}

// BenchmarkCrash: from SIGKILL of the holder to its successor's first line, with a TTL of 2 s, by the database's clock.
func BenchmarkCrash(b *testing.B) {
	pool := durable(b, 5)
	url := pool.Config().ConnString()
	mustExec(b, pool, `create table begun (pid int, attempt int, at timestamptz)`)
	for b.Loop() {
		mustExec(b, pool, `truncate begun`)
		workers := map[int]*faults.Process{}
		for range 2 {
			w := faults.Spawn(b, "holder", url)
			workers[w.Pid()] = w
		}
		var gaps []time.Duration
		attempt, pid, _ := next(b, pool, 0)
		for range crashes {
			wait := time.NewTimer(time.Duration(attempt%7) * 150 * time.Millisecond) // real clock: kills at all times of a beat
			<-wait.C
			killed := clock(b, pool)
			workers[pid].Kill(b)
			var at time.Time
			attempt, pid, at = next(b, pool, attempt)
			gaps = append(gaps, at.Sub(killed))
			w := faults.Spawn(b, "holder", url)
			workers[w.Pid()] = w
		}
		for _, w := range workers {
			w.Kill(b)
		}
		report(b, gaps, "crash")
	}
}

// next waits for the first line of a run after attempt.
func next(b *testing.B, pool *pgxpool.Pool, after int) (attempt, pid int, at time.Time) {
	b.Helper()
	for attempt <= after {
		err := pool.QueryRow(context.Background(), `select coalesce(max(attempt), 0), coalesce((array_agg(pid order by attempt desc))[1], 0),
			coalesce(max(at), now()) from (select pg_sleep(0.02)) s left join begun on true`).Scan(&attempt, &pid, &at)
		if err != nil {
			b.Fatal(err)
		}
	}
	return attempt, pid, at
}

func clock(b *testing.B, pool *pgxpool.Pool) (now time.Time) {
	b.Helper()
	if err := pool.QueryRow(context.Background(), `select clock_timestamp()`).Scan(&now); err != nil {
		b.Fatal(err)
	}
	return now
}
