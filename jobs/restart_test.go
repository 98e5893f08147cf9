package jobs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/internal/pgdev"
	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/migrations"
)

func TestARunGoesOnOverARestartOfTheDatabase(t *testing.T) {
	t.Parallel()
	server, err := pgdev.Start(t.Context(), pgdev.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	pool := pgtest.Open(t, server.URL())
	if _, err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	begun, restarted := make(chan fence.Token, 2), make(chan struct{})
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(2), Func: func(ctx context.Context, run *jobs.Run) error {
		begun <- run.Token()
		<-restarted
		return run.Tx(ctx, func(tx pgx.Tx) error { return run.Checkpoint(ctx, tx, "after the restart") })
	}}
	start(t, jobs.Config{Pool: pool}, job)
	first := <-begun
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, 20*time.Second, "the database answers again", func() bool { return pool.Ping(t.Context()) == nil })
	close(restarted)
	until(t, pool, 2, completeSQL, "settle")
	second := <-begun
	if n := count(t, pool, `select count(*) from pawl.runs`); n != 2 {
		t.Errorf("%d runs, want one a period: the holder keeps its lease over a restart", n)
	}
	if ahead := time.Duration(second.Seq-time.Now().UnixMicro()) * time.Microsecond; second.Seq <= first.Seq || ahead < 30*time.Second {
		t.Errorf("token %s after %s, want it ahead of the clock by the floor", second, first)
	}
}

func TestARunnerRefusesADatabaseThatWasRestoredElsewhere(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), `update pawl.clock set system_identifier = system_identifier - 1`); err != nil {
		t.Fatal(err)
	}
	r, err := jobs.New(jobs.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); !errors.Is(err, fence.ErrOtherDatabase) {
		t.Errorf("Run = %v, want ErrOtherDatabase", err)
	}
}
