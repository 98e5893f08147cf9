package jobs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

func TestATriggerMakesTheCurrentPeriodOwedOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	job := jobs.Job{Name: "settle", Schedule: "0 0 1 1 *", Period: "day", Func: nothing}
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, `select count(*) from pawl.schedules`)
	key, err := jobs.Trigger(t.Context(), pool, "settle", jobs.TriggerConfig{Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if today := time.Now().UTC().Format(time.DateOnly); key != today {
		t.Errorf("key %q, want today, %s", key, today)
	}
	until(t, pool, 1, completeSQL, "settle")
	if _, err := jobs.Trigger(t.Context(), pool, "settle", jobs.TriggerConfig{Actor: "ann"}); !errors.Is(err, jobs.ErrComplete) {
		t.Errorf("a second Trigger = %v, want ErrComplete", err)
	}
	if n := count(t, pool, `select count(*) from pawl.audit where actor = 'ann' and action = 'trigger'`); n != 1 {
		t.Errorf("%d audit rows", n)
	}
}

func TestATriggerOfAManualJobIsAFreshPeriodEachTime(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	start(t, jobs.Config{Pool: pool}, jobs.Job{Name: "repair", Schedule: "@manual", Func: nothing})
	until(t, pool, 1, `select count(*) from pawl.schedules`)
	for range 2 {
		if _, err := jobs.Trigger(t.Context(), pool, "repair", jobs.TriggerConfig{Actor: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, pool, 2, completeSQL, "repair")
}

func TestATriggerOfADeadPeriodOwesItAgain(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	fail := true
	job := jobs.Job{Name: "repair", Schedule: "0 0 1 1 *", Period: "day", MaxRetries: jobs.NoRetries, Func: func(_ context.Context, run *jobs.Run) error {
		if fail = run.Attempt == 1; fail {
			return errors.New("no")
		}
		return nil
	}}
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, `select count(*) from pawl.schedules`)
	for _, state := range []string{"dead", "complete"} {
		if _, err := jobs.Trigger(t.Context(), pool, "repair", jobs.TriggerConfig{Actor: "ann"}); err != nil {
			t.Fatal(err)
		}
		until(t, pool, 1, `select count(*) from pawl.periods where state = $1`, state)
	}
}

func TestATriggerOfAnUnknownJobSaysSo(t *testing.T) {
	t.Parallel()
	if _, err := jobs.Trigger(t.Context(), pgtest.New(t), "nobody", jobs.TriggerConfig{Actor: "ann"}); !errors.Is(err, jobs.ErrUnknownJob) {
		t.Errorf("Trigger = %v, want ErrUnknownJob", err)
	}
}
