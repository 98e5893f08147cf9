package jobs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"pawl/fence"
	"pawl/internal/pgtest"
	"pawl/jobs"
)

func TestAFunctionThatIgnoresItsContextIsFencedOffAndTold(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), `create table result (token bigint)`); err != nil {
		t.Fatal(err)
	}
	write := func(ctx context.Context, run *jobs.Run) error {
		return run.Tx(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `insert into result values ($1)`, run.Token().Seq)
			return err
		})
	}
	release, late := make(chan struct{}), make(chan error, 1)
	deaf := jobs.Job{
		Name: "settle", Schedule: "@daily", Start: daysAgo(1), Timeout: 500 * time.Millisecond, RetryDelay: time.Millisecond,
		Func: func(_ context.Context, run *jobs.Run) error { // the context is ignored
			<-release
			late <- write(context.Background(), run)
			return nil
		},
	}
	reg := prometheus.NewRegistry()
	r, l, stop := start(t, jobs.Config{Pool: pool, Concurrency: 1, Grace: time.Second, Registerer: reg}, deaf)
	pgtest.Eventually(t, 5*time.Second+deaf.Timeout, "a warning that names job and run", func() bool {
		return l.has("level=WARN", "ignores its context", "job=settle", "run=")
	})
	if n := testutil.ToFloat64(jobs.NewMetrics(reg).Stuck); n != 1 {
		t.Errorf("pawl_stuck_slots is %v, want 1", n)
	}
	var why *jobs.NotReadyError
	if err := r.Ready(); !errors.As(err, &why) {
		t.Errorf("Ready = %v though every slot is stuck", err)
	}
	until(t, pool, 1, `select count(*) from pawl.runs where state = 'timed_out' and ended_at is not null`)

	heir := deaf
	heir.Timeout, heir.Func = time.Minute, write
	start(t, jobs.Config{Pool: pool}, heir)
	until(t, pool, 1, completeSQL, "settle")
	close(release)
	if err := <-late; !errors.Is(err, fence.ErrStale) && !errors.Is(err, fence.ErrNotHeld) && !errors.Is(err, jobs.ErrEnded) {
		t.Errorf("the old holder's late write = %v, want a refusal", err)
	}
	if n := count(t, pool, `select count(*) from result`); n != 1 {
		t.Errorf("%d results, want the successor's alone", n)
	}
	pgtest.Eventually(t, 5*time.Second, "the slot is free again", func() bool { return r.Ready() == nil })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestALateWriteWithTheTokenAloneIsRefusedAndRecorded(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	tokens := make(chan fence.Token, 1)
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(1), Func: func(_ context.Context, run *jobs.Run) error {
		tokens <- run.Token()
		return nil
	}}
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, completeSQL, "settle")
	err := fence.Do(t.Context(), pool, <-tokens, func(pgx.Tx) error { return nil })
	if !errors.Is(err, fence.ErrNotHeld) {
		t.Errorf("Do with the token of an ended run = %v, want ErrNotHeld", err)
	}
	until(t, pool, 1, `select count(*) from pawl.refusals where lock = 'job:settle'`)
}

// A function that ignored its timeout must not make the shutdown wait for the whole of a second grace.
func TestADrainIsNotHeldUpByAFunctionThatIgnoresItsTimeout(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(1), Timeout: 300 * time.Millisecond, Func: func(context.Context, *jobs.Run) error {
		<-release
		return nil
	}}
	_, l, stop := start(t, jobs.Config{Pool: pool, Grace: time.Second, Concurrency: 1}, job)
	pgtest.Eventually(t, 5*time.Second, "the function ignores its timeout", func() bool { return l.has("ignores its context") })
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the drain waits for a function that ignores its context")
	}
}
