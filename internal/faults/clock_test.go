package faults_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/faults"
	"pawl/internal/pgtest"
	"pawl/internal/wall"
	"pawl/jobs"
)

const leaps = 4

// leaping is a job whose machine's clock is set just before it writes, and again before it commits. It has one run only.
func leaping(context.Context, *pgxpool.Pool) ([]jobs.Job, error) {
	start := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -leaps).Add(time.Hour)
	there := faults.Leap
	return []jobs.Job{{Name: "leaping", Schedule: "@daily", Start: start, CatchUp: "all", MaxRetries: jobs.NoRetries, Func: func(ctx context.Context, run *jobs.Run) error {
		wall.Shift(there)
		there = -there
		err := run.Tx(ctx, func(tx pgx.Tx) error {
			wall.Shift(there)
			return run.Checkpoint(ctx, tx, 1)
		})
		if err != nil {
			return err
		}
		wall.Shift(there)
		return run.Complete(ctx, nil)
	}}}, nil
}

func TestAClockThatIsSetCostsNoRun(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db := pgtest.Open(t, url)
	faults.Spawn(t, "leaping", url)
	var complete, dead int
	pgtest.Eventually(t, 30*time.Second, "all periods are over", func() bool {
		err := db.QueryRow(t.Context(), `select count(*) filter (where state = 'complete'), count(*) filter (where state = 'dead') from pawl.periods`).Scan(&complete, &dead)
		return err == nil && complete+dead == leaps
	})
	if dead != 0 {
		t.Errorf("%d of %d periods are dead", dead, leaps)
	}
}
