package jobs_test

import (
	"errors"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

func TestARetiredJobIsPlannedNoMoreAndOwesNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	job := jobs.Job{Name: "tick", Schedule: "@every 1s", Func: nothing}
	_, _, stop := start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, `select least(count(*), 1) from pawl.periods where state = 'complete'`)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	start(t, jobs.Config{Pool: pool}, jobs.Job{Name: "other", Schedule: "@yearly", Func: nothing}) // plans it for those that have it
	until(t, pool, 1, `select least(count(*), 1) from pawl.periods where job = 'tick' and state = 'open'`)
	cancelled, err := jobs.Retire(t.Context(), pool, "tick", "ann", "replaced by tock")
	if err != nil || cancelled == 0 {
		t.Fatalf("Retire = %d, %v, want some cancelled periods", cancelled, err)
	}
	if n := count(t, pool, `select count(*) from pawl.periods where job = 'tick' and state = 'open'`); n != 0 {
		t.Errorf("%d periods are still owed", n)
	}
	if n := count(t, pool, `select count(*) from pawl.schedules where retired_at is not null and next_at is null`); n != 1 {
		t.Error("the schedule is not retired")
	}
	if _, err := jobs.Trigger(t.Context(), pool, "tick", jobs.TriggerConfig{Actor: "ann"}); !errors.Is(err, jobs.ErrUnknownJob) {
		t.Errorf("Trigger of a retired job = %v, want ErrUnknownJob", err)
	}
	if _, err := jobs.Retire(t.Context(), pool, "nobody", "ann", "x"); !errors.Is(err, jobs.ErrUnknownJob) {
		t.Errorf("Retire of an unknown job = %v, want ErrUnknownJob", err)
	}
	before := time.Now()
	start(t, jobs.Config{Pool: pool}, job) // a runner that has it brings it back, from now on
	pgtest.Eventually(t, 10*time.Second, "it runs again", func() bool {
		return count(t, pool, `select count(*) from pawl.periods where state = 'complete' and started_at > $1`, before) > 0
	})
}
