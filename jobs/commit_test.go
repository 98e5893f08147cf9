package jobs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

// Its own heartbeat finds the row taken, then the lease gone, while the reply to COMMIT is on its way: that is no loss.
func TestARunWhoseCommitOutlastsItsLeaseIsComplete(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	for _, sql := range []string{
		`create table result (day text)`,
		`create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(1.2); return null; end $$`,
		`create constraint trigger slow after insert on result deferrable initially deferred for each row execute function slow()`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	said := make(chan error, 9)
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(1), TTL: time.Second, Func: func(ctx context.Context, run *jobs.Run) error {
		err := run.Complete(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `insert into result values ($1)`, run.Period.Key)
			return err
		})
		said <- errors.Join(err, context.Cause(ctx))
		return err
	}}
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, completeSQL, "settle")
	if err := <-said; err != nil {
		t.Errorf("the function was told %v", err)
	}
	if n := count(t, pool, `select count(*) from pawl.runs`); n != 1 {
		t.Errorf("%d runs, want the one that completed", n)
	}
}
