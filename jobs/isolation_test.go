package jobs_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

// Beats, progress and planners write beside the transaction, which must not fail for it.
func TestARunCompletesUnderASnapshotWhileItsLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), `create table result (key text, level text)`); err != nil {
		t.Fatal(err)
	}
	slow := func(ctx context.Context, tx pgx.Tx, key string) error {
		_, err := tx.Exec(ctx, `insert into result select $1, current_setting('transaction_isolation') from pg_sleep(1.2)`, key)
		return err
	}
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(2), TTL: time.Second, Isolation: pgx.RepeatableRead, MaxRetries: jobs.NoRetries, Func: func(ctx context.Context, run *jobs.Run) error {
		err := run.Tx(ctx, func(tx pgx.Tx) error {
			run.Progress(1, 2)
			if err := slow(ctx, tx, run.Period.Key); err != nil {
				return err
			}
			return run.Checkpoint(ctx, tx, "half")
		})
		if err != nil {
			return err
		}
		return run.Complete(ctx, func(tx pgx.Tx) error { return slow(ctx, tx, run.Period.Key) })
	}}
	start(t, jobs.Config{Pool: pool}, job, jobs.Job{Name: "busy", Schedule: "@every 1s", Lock: "job:settle", Func: nothing})
	until(t, pool, 2, completeSQL, "settle")
	if n := count(t, pool, `select count(*) from result where level = 'repeatable read'`); n != 4 {
		t.Errorf("%d rows at repeatable read, want 4", n)
	}
	until(t, pool, 2, `select count(*) from pawl.runs where job = 'settle' and state = 'complete'`)
	until(t, pool, 2, `select count(*) from pawl.tenures t join pawl.runs r on r.id = t.grant_id where r.job = 'settle' and t.how = 'released'`)
}

func TestAnIsolationLevelThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	r, err := jobs.New(jobs.Config{Pool: pgtest.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Add(jobs.Job{Name: "settle", Schedule: "@daily", Isolation: "snapshot; drop table x", Func: nothing})
	if err == nil || !strings.Contains(err.Error(), "Isolation") {
		t.Errorf("Add = %v, want it to name Isolation", err)
	}
}
