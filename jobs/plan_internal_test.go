package jobs

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestNothingIsPlannedWhileTheClocksDisagree(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	j := r.jobs["j"]
	j.Schedule, j.Start, j.Lock, j.MaxRetries = "@daily", time.Now().AddDate(0, 0, -3), "L", 5
	if err := r.registerJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	r.clock = func() time.Time { return time.Now().Add(6 * time.Minute) }
	err := r.plan(t.Context())
	if err == nil || !strings.Contains(err.Error(), "clock") || !strings.Contains(err.Error(), "6m") {
		t.Errorf("plan = %v, want it to name both clocks", err)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods`); n != 0 {
		t.Errorf("%d periods were planned", n)
	}
	r.clock = time.Now
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where state = 'open'`); n != 3 {
		t.Errorf("%d periods are owed, want 3", n)
	}
}

func TestAnEditPlansTheLastTicksByTheOldDefinition(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	old := Job{Name: "j", Schedule: "@daily", Start: time.Now().AddDate(0, 0, -2), Lock: "L", MaxRetries: 5}
	if err := r.registerJob(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	edited := old
	edited.Schedule, edited.Lock, edited.Start = "@hourly", "M", time.Time{}
	for range 2 { // the second time nothing changes
		if err := r.registerJob(t.Context(), edited); err != nil {
			t.Fatal(err)
		}
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where lock = 'L'`); n != 2 {
		t.Errorf("%d periods were planned by the old definition, want 2", n)
	}
	if n := exec(t, pool, `select count(*) from pawl.schedules where lock = 'M' and definition ->> 'schedule' = '@hourly'
		and watermark > now() - interval '1 min' and next_at > now()`); n != 1 {
		t.Error("the new definition is not stored with a watermark of now")
	}
}

func TestAnEditLosesNoTickOfALongBacklog(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	old := Job{Name: "j", Schedule: "@every 1m", CatchUp: "all", Start: time.Now().Add(-3 * time.Hour), Lock: "L", MaxRetries: 5}
	if err := r.registerJob(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	edited := old
	edited.Schedule = "@daily"
	if err := r.registerJob(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where state = 'open'`); n != 180 {
		t.Errorf("%d of 180 ticks of the old schedule are owed", n)
	}
}

func TestTwoReplicasThatRegisterAtOnceStoreOneJob(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			errs <- r.registerJob(context.Background(), Job{Name: "j", Schedule: "@daily", Lock: "L", MaxRetries: 5})
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := exec(t, pool, `select count(*) from pawl.schedules`); n != 1 {
		t.Errorf("%d schedules", n)
	}
}

func TestAnotherAppsJobIsNotTouched(t *testing.T) {
	t.Parallel()
	r, _ := opened(t)
	j := Job{Name: "j", Schedule: "@daily", Lock: "L", MaxRetries: 5}
	if err := r.registerJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	r.cfg.App = "ledger"
	if err := r.registerJob(t.Context(), j); err == nil || !strings.Contains(err.Error(), `"default"`) {
		t.Errorf("register = %v, want it to name the app that has the job", err)
	}
}

func TestOldTicksAreRecordedAsMissedWithTheReason(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	j := Job{Name: "j", Schedule: "@daily", Start: time.Now().AddDate(0, 0, -20), Lock: "L", MaxRetries: 5}
	if err := r.registerJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	open := exec(t, pool, `select count(*) from pawl.periods where state = 'open'`)
	missed := exec(t, pool, `select count(*) from pawl.periods where state = 'missed' and reason = 'window' and ended_at is not null`)
	if open != 7 && open != 8 || open+missed != 20 {
		t.Errorf("%d owed and %d missed of 20, want a week owed and the rest missed", open, missed)
	}
}

func TestAStoredDefinitionThatCannotBeReadStopsOnlyItsOwnJob(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	start := time.Now().AddDate(0, 0, -3)
	for _, name := range []string{"a", "j"} {
		if err := r.registerJob(t.Context(), Job{Name: name, Schedule: "@daily", Start: start, Lock: name, MaxRetries: 5}); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, pool, `update pawl.schedules set definition = '{"schedule": ["of", "a", "later", "version"]}' where job = 'a' returning 1`)
	if err := r.plan(t.Context()); err != nil {
		t.Errorf("plan = %v", err)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where job = 'j'`); n != 3 {
		t.Errorf("%d periods of the other job are planned, want 3", n)
	}
}

// What the old definition owed can't be known any more: a row says so.
func TestADefinitionThatCannotBeReadIsReplacedWithARowThatSaysSo(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	job := Job{Name: "a", Schedule: "@daily", Start: time.Now().AddDate(0, 0, -3), Lock: "a", MaxRetries: 5}
	if err := r.registerJob(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `update pawl.schedules set definition = '{"schedule": ["of", "a", "later", "version"]}' where job = 'a' returning 1`)
	if err := r.registerJob(t.Context(), job); err != nil {
		t.Fatalf("register = %v", err)
	}
	if n := exec(t, pool, `select count(*) from pawl.audit where job = 'a' and action = 'replan' and reason <> '' and detail ? 'watermark'`); n != 1 {
		t.Error("no row says from when on ticks may be missing, and why")
	}
}

func TestAnEditPlansAllOfTheLastTicksHoweverMany(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	old := Job{Name: "j", Schedule: "@every 1m", CatchUp: "all", Start: time.Now().Add(-2 * time.Hour), Lock: "L", MaxRetries: 5}
	if err := r.registerJob(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	edited := old
	edited.Schedule = "@every 1h"
	if err := r.registerJob(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods`); n < 119 {
		t.Errorf("%d of 120 ticks have a row: the others are lost without a word", n)
	}
}

func TestALaneThatSomebodyHoldsDoesNotStopThePlanningOfOthers(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.mostWait = mostWait
	start := time.Now().AddDate(0, 0, -3)
	for _, name := range []string{"a", "j"} {
		if err := r.registerJob(t.Context(), Job{Name: name, Schedule: "@daily", Start: start, Lock: name, MaxRetries: 5}); err != nil {
			t.Fatal(err)
		}
	}
	held, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Rollback(context.Background())
	exec(t, held, `select 1 from pawl.lane(array['a'])`)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := r.plan(ctx); err == nil {
		t.Error("plan says nothing of the job that it couldn't plan")
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where job = 'j'`); n != 3 {
		t.Errorf("%d periods of the other job are planned, want 3", n)
	}
}

func TestSchedulesThatCannotBePlannedDoNotHideTheOthers(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	if err := r.registerJob(t.Context(), Job{Name: "j", Schedule: "@daily", Start: time.Now().AddDate(0, 0, -3), Lock: "L", MaxRetries: 5}); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `with i as (insert into pawl.schedules (job, app, lock, definition, watermark, next_at)
	  select 'a' || i, 'default', 'a', '{"schedule": "of a later version"}', now(), now() from generate_series(1, 150) i returning 1) select count(*) from i`)
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where job = 'j'`); n != 3 {
		t.Errorf("%d periods of the job that can be planned, want 3", n)
	}
}

func TestAnEditLeavesAStartThatIsStillToCome(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	job := Job{Name: "j", Schedule: "@hourly", Start: time.Now().Add(48 * time.Hour), Lock: "L", MaxRetries: 5}
	for _, job.MaxRetries = range []int{5, 6} {
		if err := r.registerJob(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	if n := exec(t, pool, `select count(*) from pawl.schedules where watermark > now() + interval '47 h' and next_at > now() + interval '47 h'`); n != 1 {
		t.Error("after an edit the job runs before its start")
	}
}
