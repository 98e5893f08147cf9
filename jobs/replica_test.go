package jobs_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

func TestAReplicaWithoutTheHandlerLeavesTheJobAlone(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(2), Func: nothing}
	other := jobs.Job{Name: "report", Schedule: "@daily", Start: daysAgo(2), Func: nothing}
	_, _, stop := start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 2, completeSQL, "settle")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	owe(t, pool, "settle", "2020-01-01", "job:settle")
	start(t, jobs.Config{Pool: pool}, other)
	until(t, pool, 2, completeSQL, "report")
	if n := count(t, pool, `select count(*) from pawl.periods where job = 'settle' and state = 'open' and attempts = 0`); n != 1 {
		t.Errorf("%d periods of the other replica's job are untouched, want 1", n)
	}
	if n := count(t, pool, `select count(*) from pawl.schedules where job = 'settle' and retired_at is null`); n != 1 {
		t.Error("the other replica's job was retired")
	}
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 3, completeSQL, "settle")
}

func TestJobsThatShareALockRunOneAtATimeOldestFirst(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	var mu sync.Mutex
	var running, most int
	busy := func(ctx context.Context, _ *jobs.Run) error {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		defer func() { mu.Lock(); running--; mu.Unlock() }()
		_, err := pool.Exec(ctx, `select pg_sleep(0.02)`)
		return err
	}
	a := jobs.Job{Name: "a", Schedule: "@daily", Start: daysAgo(6), Lock: "ledger", Func: busy}
	b := jobs.Job{Name: "b", Schedule: "0 12 * * *", Start: daysAgo(6), Lock: "ledger", Func: busy}
	start(t, jobs.Config{Pool: pool}, a)
	start(t, jobs.Config{Pool: pool}, b)
	until(t, pool, 0, `select count(*) from pawl.periods where ended_at is null`)
	pgtest.Eventually(t, 20*time.Second, "both jobs are done", func() bool {
		return count(t, pool, completeSQL, "a") == 6 && count(t, pool, completeSQL, "b") >= 5
	})
	if most != 1 {
		t.Errorf("%d runs of one lock at a time", most)
	}
}

func TestManyReplicasCompleteEachPeriodOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), `create table done (key text)`); err != nil {
		t.Fatal(err)
	}
	job := jobs.Job{Name: "settle", Schedule: "@every 1h", Start: time.Now().Add(-20 * time.Hour), CatchUp: "all", Func: func(ctx context.Context, run *jobs.Run) error {
		_, err := pool.Exec(ctx, `insert into done values ($1)`, run.Period.Key)
		return err
	}}
	for range 4 {
		start(t, jobs.Config{Pool: pool, Concurrency: 3}, job)
	}
	until(t, pool, 20, completeSQL, "settle")
	if n := count(t, pool, `select count(*) from done`); n != 20 {
		t.Errorf("%d runs for 20 periods", n)
	}
}

// A pool that jobs hold all of must not starve heartbeats, starts or ends.
func TestJobsThatHoldEveryConnectionDoNotStopTheHeartbeats(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	cfg := pool.Config()
	cfg.MaxConns = 2
	small, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(small.Close)
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(1), TTL: time.Second, Func: func(ctx context.Context, _ *jobs.Run) error {
		for range 2 {
			conn, err := small.Acquire(ctx)
			if err != nil {
				return err
			}
			defer conn.Release()
		}
		_, err := pool.Exec(ctx, `select pg_sleep(3)`) // three lifetimes of the lease
		return err
	}}
	start(t, jobs.Config{Pool: small}, job)
	until(t, pool, 1, completeSQL, "settle")
	if n := count(t, pool, `select count(*) from pawl.runs`); n != 1 {
		t.Errorf("%d runs: the lease was lost while the pool was exhausted", n)
	}
	if n := count(t, pool, `select beats from pawl.tenures`); n < 5 {
		t.Errorf("%d beats in 3 s at TTL 1s, want at least 5", n)
	}
}

// owe plans one more period, as an operator's back-fill would.
func owe(t *testing.T, pool *pgxpool.Pool, job, key, lock string) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	for _, sql := range []string{
		`select pawl.lane(array['` + lock + `'])`,
		`insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at) values ('` + job + `', '` + key + `', '` + lock + `', now(), now(), now())`,
		`select pawl.advance(array['` + lock + `'])`,
	} {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}
