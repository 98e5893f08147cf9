package bench_test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgdev"
	"pawl/migrations"
)

const rounds = 9

// pairs measures floor and ours nine times each, side by side. Ratio 1: as fast as the floor.
func pairs(b *testing.B, floor, ours func() time.Duration) {
	b.Helper()
	for b.Loop() {
		var ratios, floors, mine []float64
		for range rounds {
			var f, o time.Duration
			both := []func(){func() { f = floor() }, func() { o = ours() }}
			if rand.IntN(2) == 0 {
				slices.Reverse(both)
			}
			both[0]()
			both[1]()
			ratios, floors, mine = append(ratios, f.Seconds()/o.Seconds()), append(floors, f.Seconds()), append(mine, o.Seconds())
		}
		for _, s := range [][]float64{ratios, floors, mine} {
			slices.Sort(s)
		}
		b.ReportMetric(ratios[rounds/2], "ratio")
		b.ReportMetric(ratios[0], "ratio-min")
		b.ReportMetric(ratios[rounds-1], "ratio-max")
		b.ReportMetric(floors[rounds/2]*1000, "floor-ms")
		b.ReportMetric(mine[rounds/2]*1000, "ours-ms")
		b.ReportMetric(0, "ns/op")
	}
}

// durable is a pool on a server that flushes its commits, with pawl's schema.
func durable(b *testing.B, conns int32) *pgxpool.Pool {
	b.Helper()
	dir, err := os.MkdirTemp("", "pawl-bench-") //nolint:usetesting // b.TempDir is closed to the user that Postgres runs as
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := pgdev.Start(context.Background(), pgdev.Options{
		Dir: dir, Durable: true, Settings: map[string]string{"shared_preload_libraries": "pg_stat_statements"},
	})
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
	cfg.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if _, err := migrations.Up(context.Background(), pool); err != nil {
		b.Fatal(err)
	}
	mustExec(b, pool, `create table plain (id int primary key, v bigint not null, last_token bigint) with (fillfactor = 50)`)
	mustExec(b, pool, `insert into plain select i, 0 from generate_series(0, 99) i`)
	return pool
}

func mustExec(b *testing.B, pool *pgxpool.Pool, sql string, args ...any) {
	b.Helper()
	if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
}

// timed runs do on so many goroutines, each so many times, and says how long that took.
func timed(goroutines, times int, do func(g int) error) func() time.Duration {
	return func() time.Duration {
		start := time.Now()
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				for range times {
					if err := do(g); err != nil {
						panic(err)
					}
				}
			})
		}
		all.Wait()
		return time.Since(start)
	}
}
