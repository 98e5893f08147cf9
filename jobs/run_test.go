package jobs_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

func TestFiveOwedDaysAreEachCompletedOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(5), Func: nothing}
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 5, completeSQL, "settle")
	if n := count(t, pool, `select count(*) from pawl.runs where state = 'complete'`); n != 5 {
		t.Errorf("%d runs are complete, want 5", n)
	}
	if n := count(t, pool, `select count(*) from pawl.tenures where how = 'released'`); n != 5 {
		t.Errorf("%d tenures are released, want 5", n)
	}
	if n := count(t, pool, `select count(*) from pawl.locks where grant_id is not null`); n != 0 {
		t.Errorf("%d locks are still held", n)
	}
}

func TestResultMarkerAndReleaseCommitTogether(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), `create table result (day text, token bigint)`); err != nil {
		t.Fatal(err)
	}
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(3), Func: func(ctx context.Context, run *jobs.Run) error {
		return run.Complete(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `insert into result values ($1, $2)`, run.Period.Key, run.Token().Seq)
			return err
		})
	}}
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 3, completeSQL, "settle")
	same := `select count(*) from result w join pawl.periods p on p.key = w.day and p.token = w.token
	  join pawl.runs r on r.id = p.run join pawl.tenures t on t.lock = r.lock and t.token = r.token
	  where p.xmin = w.xmin and r.xmin = w.xmin and t.xmin = w.xmin`
	if n := count(t, pool, same); n != 3 {
		t.Errorf("%d results share the transaction of marker, run and release, want 3", n)
	}
}

func TestTheLastProgressOfARunIsKept(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	work := func(_ context.Context, run *jobs.Run) error {
		for i := range int64(200) {
			run.Progress(i+1, 200)
		}
		return nil
	}
	start(t, jobs.Config{Pool: pool}, jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(3), Func: work}, jobs.Job{
		Name: "silent", Schedule: "@daily", Start: daysAgo(2), Func: nothing,
	})
	until(t, pool, 3, completeSQL, "settle")
	until(t, pool, 2, completeSQL, "silent")
	if n := count(t, pool, `select count(*) from pawl.runs where done = 200 and total = 200`); n != 3 {
		t.Errorf("%d runs with their last progress, want 3", n)
	}
	if n := count(t, pool, `select count(*) from pawl.runs where job = 'silent' and done is null and total is null`); n != 2 {
		t.Errorf("%d runs without progress, want 2", n)
	}
}
