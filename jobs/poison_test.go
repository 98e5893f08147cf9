package jobs_test

import (
	"context"
	"os"
	"testing"
	"time"

	"pawl/internal/faults"
	"pawl/internal/pgtest"
	"pawl/jobs"
)

// poison kills its process at every run of its first period.
func poison() jobs.Job {
	first := daysAgo(1).Format(time.DateOnly)
	return jobs.Job{Name: "poison", Schedule: "@daily", Start: daysAgo(2), TTL: time.Second, MaxRetries: 2, Func: func(_ context.Context, run *jobs.Run) error {
		if run.Period.Key == first {
			os.Exit(137)
		}
		return nil
	}}
}

func TestAJobThatKillsItsProcessIsDeadAfterItsRetriesAndTheNextPeriodRuns(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := pgtest.Open(t, url)
	for range 3 { // MaxRetries + 1
		<-faults.Spawn(t, "poison", url).Done()
	}
	faults.Spawn(t, "poison", url)
	first := daysAgo(1).Format(time.DateOnly)
	until(t, pool, 1, `select count(*) from pawl.periods where key = $1 and state = 'dead' and attempts = 3 and reason = 'lost'`, first)
	until(t, pool, 1, completeSQL, "poison")
	if n := count(t, pool, `select count(*) from pawl.runs where key = $1 and state = 'lost' and error <> ''`, first); n != 3 {
		t.Errorf("%d lost runs that say why, want 3", n)
	}
}
