package jobs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

func TestAFailingPeriodIsDeadAfterItsRetriesAndTheNextStillRuns(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	first := daysAgo(2).Truncate(24*time.Hour).AddDate(0, 0, 1).Format(time.DateOnly)
	job := jobs.Job{
		Name: "settle", Schedule: "@daily", Start: daysAgo(2), MaxRetries: 1, RetryDelay: time.Millisecond, RetryMaxDelay: time.Millisecond,
		Func: func(_ context.Context, run *jobs.Run) error {
			if run.Period.Key == first {
				return errors.New("the bank is closed")
			}
			return nil
		},
	}
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, `select count(*) from pawl.periods where key = $1 and state = 'dead' and reason = 'failed' and attempts = 2`, first)
	until(t, pool, 1, completeSQL, "settle")
	if n := count(t, pool, `select count(*) from pawl.runs where key = $1 and state = 'failed' and error = 'the bank is closed'`, first); n != 2 {
		t.Errorf("%d failed runs with their error, want 2", n)
	}
}

func TestAPanicIsAFailureWithItsStack(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(1), MaxRetries: jobs.NoRetries, Func: func(context.Context, *jobs.Run) error {
		panic("no such merchant")
	}}
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, `select count(*) from pawl.runs where state = 'failed' and error like E'panic: no such merchant\npawl/jobs_test.TestAPanic%retry_test.go%'`)
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'dead'`)
}

func TestAnErrorThatIsNoTextForPostgresIsRecordedAllTheSame(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(1), MaxRetries: jobs.NoRetries, Func: func(context.Context, *jobs.Run) error {
		return errors.New("bad \x00 bytes \xff" + strings.Repeat("é", 4000))
	}}
	_, l, _ := start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, `select count(*) from pawl.runs where state = 'failed' and error like 'bad _ bytes _é%'`)
	pgtest.Eventually(t, 10*time.Second, "the log has an error that says that the period is dead", func() bool {
		return l.has("level=ERROR", "period is dead", "job=settle")
	})
}

func TestARetryWaitsForItsTimeAtTheHeadOfTheLine(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(2), RetryDelay: time.Hour, RetryMaxDelay: time.Hour, Func: func(_ context.Context, run *jobs.Run) error {
		if run.Attempt == 1 {
			return errors.New("not yet")
		}
		return nil
	}}
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'open' and attempts = 1 and not_before > clock_timestamp()`)
	if n := count(t, pool, `select count(*) from pawl.runs`); n != 1 {
		t.Errorf("%d runs: the second period has jumped the line", n)
	}
	if _, err := pool.Exec(t.Context(), `update pawl.periods set not_before = null`); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `select pawl.advance(array['job:settle'])`); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'complete' and attempts = 2`)
}

func TestATimeoutEndsTheRunAndItsPeriodIsOwedAgain(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	job := jobs.Job{
		Name: "settle", Schedule: "@daily", Start: daysAgo(1), Timeout: 200 * time.Millisecond, RetryDelay: time.Millisecond,
		RetryMaxDelay: time.Millisecond, Func: func(ctx context.Context, run *jobs.Run) error {
			if run.Attempt > 1 {
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		},
	}
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, completeSQL, "settle")
	if n := count(t, pool, `select count(*) from pawl.runs where state = 'timed_out'`); n != 1 {
		t.Errorf("%d runs timed out, want 1", n)
	}
}

func TestADrainedRunCostsNoAttemptAndItsSuccessorResumes(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	type mark struct{ Done int }
	begun := make(chan struct{})
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(1), Func: checkpointThenWait(begun, mark{7})}
	_, _, stop := start(t, jobs.Config{Pool: pool, Grace: 100 * time.Millisecond}, job)
	<-begun
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if n := count(t, pool, `select count(*) from pawl.runs where state = 'drained'`); n != 1 {
		t.Errorf("%d runs are drained, want 1", n)
	}
	if n := count(t, pool, `select count(*) from pawl.periods where state = 'open' and attempts = 0`); n != 1 {
		t.Errorf("%d periods are owed without an attempt, want 1", n)
	}
	if n := count(t, pool, `select count(*) from pawl.locks where grant_id is not null`); n != 0 {
		t.Error("the lock is still held after the drain")
	}
	found := make(chan mark, 1)
	job.Func = func(_ context.Context, run *jobs.Run) error {
		var m mark
		if _, err := run.Resume(&m); err != nil {
			return err
		}
		found <- m
		return nil
	}
	start(t, jobs.Config{Pool: pool}, job)
	if m := <-found; m.Done != 7 {
		t.Errorf("the successor resumed from %+v, want 7", m)
	}
	until(t, pool, 1, completeSQL, "settle")
}
