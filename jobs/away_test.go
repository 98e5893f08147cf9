package jobs_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgdev"
	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/migrations"
)

// A run that ends while the server is away for a moment has done its work: it may not be done again. The next period
// needs a token of the server's new start.
func TestARunThatEndsWhileTheServerRestartsIsComplete(t *testing.T) {
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
	inside, away := make(chan struct{}, 9), make(chan struct{})
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(2), TTL: 10 * time.Second, Func: func(context.Context, *jobs.Run) error {
		inside <- struct{}{}
		<-away
		return nil
	}}
	start(t, jobs.Config{Pool: pool}, job)
	<-inside
	if err := syscall.Kill(server.Pid(), syscall.SIGINT); err != nil { // fast shutdown
		t.Fatal(err)
	}
	close(away)
	pgtest.Eventually(t, 5*time.Second, "the server is away", func() bool { return !answers(pool) })
	tick := time.NewTimer(time.Second) // real clock: how long the server is away
	<-tick.C
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, 30*time.Second, "both periods are complete", func() bool {
		var n int
		err := pool.QueryRow(t.Context(), completeSQL, "settle").Scan(&n)
		return err == nil && n == 2
	})
	if n := count(t, pool, `select count(*) from pawl.runs`); n != 2 {
		t.Errorf("%d runs: the work of the first was lost", n)
	}
}

func answers(pool *pgxpool.Pool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return pool.Ping(ctx) == nil
}
