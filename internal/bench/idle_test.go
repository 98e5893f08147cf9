package bench_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/jobs"
	"pawl/lockrepo"
)

// BenchmarkIdle: a process with 500 schedules and nothing to do, for half a minute.
func BenchmarkIdle(b *testing.B) {
	pool := durable(b, 4)
	mustExec(b, pool, `create extension pg_stat_statements`)
	r, err := jobs.New(jobs.Config{Pool: pool})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 500 {
		if err := r.Add(jobs.Job{Name: fmt.Sprintf("j%d", i), Schedule: "@yearly", Func: func(context.Context, *jobs.Run) error { return nil }}); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	for r.Ready() != nil {
		pause(50 * time.Millisecond)
	}
	pause(2 * time.Second)
	for b.Loop() {
		mustExec(b, pool, `select pg_stat_statements_reset()`)
		client, server, start := ownCPU(), serverCPU(postmaster(b, pool)), time.Now()
		pause(30 * time.Second)
		took := time.Since(start).Seconds()
		var calls float64
		if err := pool.QueryRow(ctx, `select sum(calls) from pg_stat_statements`).Scan(&calls); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(calls/took, "statements/s")
		b.ReportMetric((ownCPU()-client).Seconds()/took*100, "client-%-of-a-core")
		b.ReportMetric((serverCPU(postmaster(b, pool))-server).Seconds()/took*100, "server-%-of-a-core")
		b.ReportMetric(0, "ns/op")
	}
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRenewals: 10,000 live leases of 30 s in one process, for a minute.
func BenchmarkRenewals(b *testing.B) {
	const leases, ttl = 10000, 30 * time.Second
	pool := durable(b, 4)
	repo, err := lockrepo.New(lockrepo.Config{Pool: pool})
	if err != nil {
		b.Fatal(err)
	}
	defer repo.Close()
	ctx := context.Background()
	mustExec(b, pool, `insert into pawl.locks (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
		select 'lock ' || i, i, pawl.incarnation(), lpad(i::text, 32, '0')::uuid, 'bench', '30 s', now(), now(), now() + interval '30 s'
		  from generate_series(1, $1::int) i`, leases)
	sent := lockrepo.Now()
	for i := 1; i <= leases; i++ {
		grant := uuid.MustParse(fmt.Sprintf("%032d", i))
		l := repo.Granted(fence.Token{Lock: fmt.Sprint("lock ", i), Seq: int64(i)}, grant, "bench", ttl, sent)
		_, kept := repo.Keep(ctx, l)
		defer kept.Stop()
	}
	pause(ttl / 2)
	for b.Loop() {
		client, server, start := ownCPU(), serverCPU(postmaster(b, pool)), time.Now()
		pause(time.Minute)
		took := time.Since(start).Seconds()
		var live, beats float64
		if err := pool.QueryRow(ctx, `select count(*), sum(beats) from pawl.locks where expires_at > clock_timestamp()`).Scan(&live, &beats); err != nil {
			b.Fatal(err)
		}
		if live != leases {
			b.Fatalf("%v of %d leases are live", live, leases)
		}
		b.ReportMetric((ownCPU()-client).Seconds()/took*100, "client-%-of-a-core")
		b.ReportMetric((serverCPU(postmaster(b, pool))-server).Seconds()/took*100, "server-%-of-a-core")
		b.ReportMetric(beats, "beats")
		b.ReportMetric(0, "ns/op")
	}
}

// pause lets real time pass: what is measured is what happens meanwhile.
func pause(d time.Duration) {
	t := time.NewTimer(d) // real clock: the benchmark is of a stretch of it
	defer t.Stop()
	<-t.C
}

func postmaster(b *testing.B, pool *pgxpool.Pool) (pid int) {
	b.Helper()
	// The parent of a backend: its fourth field in stat.
	if err := pool.QueryRow(context.Background(), `select split_part(pg_read_file('/proc/self/stat'), ' ', 4)::int`).Scan(&pid); err != nil {
		b.Fatal(err)
	}
	return pid
}
