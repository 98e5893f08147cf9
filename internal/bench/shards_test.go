package bench_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/examples/settlement"
	"pawl/internal/faults"
	"pawl/internal/pgdev"
	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/migrations"
)

var shardPayments = flag.Int("shards", 100_000, "payments that are settled in shards; from five million on, five times, and a ratio over 0.65 is an error")

const (
	shardCount  = 16
	shardGoal   = 0.65
	shardMemory = 200 << 20
	shardMany   = 5_000_000 // payments from which on the ratio is judged
	shardPairs  = 5         // then
)

// sharded is a worker of one pass; each pass has a job of its own, so that it settles anew.
func sharded(pass int) func(context.Context, *pgxpool.Pool) ([]jobs.Job, error) {
	return func(context.Context, *pgxpool.Pool) ([]jobs.Job, error) {
		j := settlement.New(settlement.Config{Shards: shardCount, Batch: 100}).Job()
		j.Name = fmt.Sprintf("settle-%d", pass)
		return []jobs.Job{j}, nil
	}
}

// A day's payments are settled by sixteen shards, on one worker that has one run at a time and on two: the ratio is what
// sharding gains on this machine. The first pass, on two, is for the caches. The fastest of each are compared: a machine that is
// shared gives half as much in one second as in the next, for the same CPU time.
func TestShardsOnTwoWorkersAreFasterThanOnOne(t *testing.T) {
	dir, err := os.MkdirTemp("", "pawl-shards-") //nolint:usetesting // t.TempDir is closed to the user that Postgres runs as
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := pgdev.Start(t.Context(), pgdev.Options{Dir: dir, Durable: true, Settings: map[string]string{"shared_buffers": "512MB"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	pool := pgtest.Open(t, s.URL())
	if _, err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	books := settlement.New(settlement.Config{})
	if err := books.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	yesterday := time.Now().UTC().AddDate(0, 0, -1)
	if err := books.Generate(t.Context(), pool, settlement.Input{Payments: *shardPayments, Days: 1, Last: yesterday, Merchants: 2000}); err != nil {
		t.Fatal(err)
	}
	t.Setenv(faults.ConcurrencyEnv, "1")
	settleInShards(t, s, pool, 0, 2)
	pairs := 1
	if *shardPayments >= shardMany {
		pairs = shardPairs
	}
	var ones, twos []float64
	for pair := range pairs {
		one, two := settleInShards(t, s, pool, 2*pair+1, 1).Seconds(), settleInShards(t, s, pool, 2*pair+2, 2).Seconds()
		t.Logf("%d payments in %d shards: %.2f s on one worker, %.2f s on two, ratio %.2f", *shardPayments, shardCount, one, two, two/one)
		ones, twos = append(ones, one), append(twos, two)
	}
	one, two := slices.Min(ones), slices.Min(twos)
	t.Logf("fastest: %.2f s on one worker, %.2f s on two, ratio %.2f", one, two, two/one)
	if two/one > shardGoal && *shardPayments >= shardMany {
		t.Errorf("ratio %.2f, want at most %.2f", two/one, shardGoal)
	}
}

// settleInShards returns how long it took from the trigger to the completion.
func settleInShards(t *testing.T, s *pgdev.Server, pool *pgxpool.Pool, pass, workers int) time.Duration {
	t.Helper()
	job := fmt.Sprintf("settle-%d", pass)
	number := func(sql string, args ...any) (n int64) {
		if err := pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if _, err := pool.Exec(t.Context(), `truncate pawl_demo.settlement; `); err != nil {
		t.Fatal(err)
	}
	var crew []*faults.Process
	for range workers {
		crew = append(crew, faults.Spawn(t, fmt.Sprintf("shards-%d", pass), s.URL()))
	}
	pgtest.Eventually(t, time.Minute, "the workers are there", func() bool {
		return number(`select count(*) from pawl.replicas where $1 = any (jobs)`, job) == int64(workers)
	})
	cpu, since := serverCPU(s.Pid()), time.Now()
	if _, err := jobs.Trigger(t.Context(), pool, job, jobs.TriggerConfig{Actor: "bench"}); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, 20*time.Minute, "the day is complete", func() bool {
		return number(`select count(*) from pawl.periods where job = $1 and parent is null and state = 'complete'`, job) == 1
	})
	took := time.Since(since)
	memory := peaks(t, crew)
	var shards, reduce float64
	err := pool.QueryRow(t.Context(), `select extract(epoch from max(ended_at) filter (where key like '%#%') - min(started_at) filter (where key like '%#%'))::float8,
		extract(epoch from max(ended_at) - max(started_at) filter (where key not like '%#%'))::float8 from pawl.runs where job = $1`, job).Scan(&shards, &reduce)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d workers: %.2f s, of which shards %.2f s and control totals %.2f s; Postgres used %.2f s of CPU (%.2f cores), workers %v MiB at most",
		workers, took.Seconds(), shards, reduce, (serverCPU(s.Pid()) - cpu).Seconds(), (serverCPU(s.Pid())-cpu).Seconds()/took.Seconds(), memory)
	for _, m := range memory {
		if m > shardMemory>>20 {
			t.Errorf("a worker used %d MiB, want less than 200", m)
		}
	}
	for what, c := range map[string][2]int64{
		"payments settled":       {number(`select sum(payments) from pawl_demo.settlement`), int64(*shardPayments)},
		"merchants and days":     {number(`select count(distinct merchant) from pawl_demo.settlement`), 2000},
		"shards complete":        {number(`select count(*) from pawl.periods where job = $1 and parent is not null and state = 'complete'`, job), shardCount},
		"workers that had a run": {number(`select count(distinct holder) from pawl.runs where job = $1 and key like '%#%'`, job), int64(workers)},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %d, want %d", what, c[0], c[1])
		}
	}
	for _, w := range crew {
		w.Kill(t)
	}
	return took
}

// peaks is the most memory that each process has had, in MiB.
func peaks(t *testing.T, crew []*faults.Process) (mib []int64) {
	t.Helper()
	for _, p := range crew {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.Pid()), "status"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if after, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(after), "kB")), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				mib = append(mib, kib>>10)
			}
		}
	}
	return mib
}
