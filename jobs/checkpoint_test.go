package jobs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

// checkpointThenWait stores m, tells begun, and waits for the end of its context.
func checkpointThenWait(begun chan<- struct{}, m any) jobs.Func {
	return func(ctx context.Context, run *jobs.Run) error {
		err := run.Tx(ctx, func(tx pgx.Tx) error { return run.Checkpoint(ctx, tx, m) })
		if err != nil {
			return err
		}
		close(begun)
		<-ctx.Done()
		return context.Cause(ctx)
	}
}

func TestACheckpointIsResumedByTheNextAttempt(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	seen := make(chan string, 10)
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(1), RetryDelay: time.Millisecond, RetryMaxDelay: time.Millisecond, Func: func(ctx context.Context, run *jobs.Run) error {
		run.Progress(int64(run.Attempt), 2)
		var at string
		found, err := run.Resume(&at)
		if err != nil {
			return err
		}
		if found {
			seen <- at
			return nil
		}
		for _, at := range []string{"merchant 10", "merchant 20"} {
			if err := run.Tx(ctx, func(tx pgx.Tx) error { return run.Checkpoint(ctx, tx, at) }); err != nil {
				return err
			}
		}
		if _, err := run.Resume(&at); err != nil || at != "merchant 20" {
			return errors.New("a run doesn't see its own checkpoint: " + at)
		}
		return errors.New("crash")
	}}
	start(t, jobs.Config{Pool: pool}, job)
	if at := <-seen; at != "merchant 20" {
		t.Errorf("resumed at %q, want the last checkpoint", at)
	}
	until(t, pool, 1, `select count(*) from pawl.runs where resumed and state = 'complete'`)
}

func TestACheckpointOfARolledBackTransactionIsNone(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	seen := make(chan bool, 10)
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(1), Func: func(ctx context.Context, run *jobs.Run) error {
		_ = run.Tx(ctx, func(tx pgx.Tx) error {
			if err := run.Checkpoint(ctx, tx, 1); err != nil {
				return err
			}
			return errors.New("rolled back")
		})
		var n int
		found, err := run.Resume(&n)
		seen <- found
		return err
	}}
	start(t, jobs.Config{Pool: pool}, job)
	if <-seen {
		t.Error("a checkpoint that was rolled back is found")
	}
	until(t, pool, 1, completeSQL, "settle")
	if n := count(t, pool, `select count(*) from pawl.checkpoints`); n != 0 {
		t.Errorf("%d checkpoints", n)
	}
}

func TestACheckpointOutsideRunTxIsRefused(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(1), MaxRetries: jobs.NoRetries, Func: func(ctx context.Context, run *jobs.Run) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return run.Checkpoint(ctx, tx, 1) })
	}}
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, `select count(*) from pawl.runs where state = 'failed' and error like '%needs the transaction that Run.Tx gave%'`)
}

func TestTheFunctionMayNotCommitForItself(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(1), Func: func(ctx context.Context, run *jobs.Run) error {
		return run.Tx(ctx, func(tx pgx.Tx) error {
			if err := tx.Commit(ctx); err == nil || !strings.Contains(err.Error(), "return from the function") {
				t.Errorf("Commit = %v, want a refusal", err)
			}
			return nil
		})
	}}
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, completeSQL, "settle")
}
