package jobs

import (
	"slices"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

const rowsSQL = `
select state || ' ' || coalesce(reason, '-') || ' ' || to_char(scheduled_at at time zone 'UTC', 'DD"T"HH24:MI') || ' ' ||
       to_char(coalesce(last_at, scheduled_at) at time zone 'UTC', 'DD"T"HH24:MI') || ' ' || ticks
  from pawl.periods where job = $1 order by scheduled_at, revision`

// A tick that doesn't run has a row; an unbroken stretch of them has one row, however many passes it takes.
func TestAStretchOfTicksThatAreNotOwedIsOneRowOverManyPasses(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.stored(t, Job{Name: "tick", Schedule: "*/10 * * * *", StartWithin: time.Minute}, utcTime(t, "2026-09-16T00:00Z"))
	for _, now := range []string{"2026-09-16T01:05Z", "2026-09-16T01:15Z", "2026-09-16T01:20Z", "2026-09-16T01:35Z", "2026-09-16T02:05Z"} {
		r.planAt(t, "tick", utcTime(t, now))
	}
	want := []string{
		"missed catch_up 16T00:10 16T00:50 5", // only the latest tick is caught up with
		"missed too_late 16T01:00 16T01:10 2", // over two passes
		"open - 16T01:20 16T01:20 1",
		"missed too_late 16T01:30 16T01:30 1",
		"missed catch_up 16T01:40 16T01:50 2",
		"missed too_late 16T02:00 16T02:00 1",
	}
	if got := texts(t, pool, rowsSQL, "tick"); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The ticks of days have a row each: a person asks for each by name.
func TestDaysThatAreNotOwedHaveARowEach(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.stored(t, Job{Name: "day", Schedule: "15 2 * * *", CatchUp: schedule.CatchUpLatest}, utcTime(t, "2026-09-10T00:00Z"))
	r.planAt(t, "day", utcTime(t, "2026-09-13T12:00Z"))
	want := []string{
		"missed catch_up 10T02:15 10T02:15 1", "missed catch_up 11T02:15 11T02:15 1", "missed catch_up 12T02:15 12T02:15 1",
		"open - 13T02:15 13T02:15 1",
	}
	if got := texts(t, pool, rowsSQL, "day"); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestAMinutelyJobPausedFor30DaysIsResumedUnderOneStretch: the next tick runs, and there is no flood.
func TestAMinutelyJobPausedFor30DaysIsResumedUnderOneStretch(t *testing.T) {
	t.Parallel()
	best := time.Hour
	for _, planned := range []bool{false, true, false} { // by the planner all along, or by nobody until it is resumed
		r, pool := opened(t)
		r.stored(t, Job{Name: "m", Schedule: "* * * * *"}, time.Now())
		if err := Pause(t.Context(), pool, "m", PauseConfig{Actor: "ann", Note: "month end"}); err != nil {
			t.Fatal(err)
		}
		exec(t, pool, `update pawl.schedules set paused_at = paused_at - interval '30 d', watermark = watermark - interval '30 d', next_at = now() returning 1`)
		if planned {
			var at time.Time
			if err := pool.QueryRow(t.Context(), `select watermark from pawl.schedules`).Scan(&at); err != nil {
				t.Fatal(err)
			}
			for day := range 30 {
				r.planAt(t, "m", at.AddDate(0, 0, day))
			}
		}
		began := time.Now()
		n, err := Resume(t.Context(), pool, "m", "ann", "")
		took := time.Since(began)
		if err != nil || n != 0 {
			t.Fatalf("Resume = %d, %v, want nothing owed", n, err)
		}
		began = time.Now()
		if err := r.plan(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("30 days of a minutely job: resumed in %s, planned in %s", took, time.Since(began))
		best = min(best, took+time.Since(began))
		if held := exec(t, pool, `select count(*) from pawl.periods where state = 'held'`); held != 1 {
			t.Errorf("%d held stretches, want one", held)
		}
		ticks := exec(t, pool, `select sum(ticks) from pawl.periods`)
		if ticks < 30*24*60 || ticks > 30*24*60+2 {
			t.Errorf("%d ticks are on record, want each of 30 days", ticks)
		}
		if n := exec(t, pool, `select count(*) from pawl.periods where state = 'open'`); n > 1 { // a minute may just have begun
			t.Errorf("%d periods are owed: a flood", n)
		}
		if n := exec(t, pool, `select count(*) from pawl.schedules where next_at > now() - interval '1 s' and next_at <= now() + interval '1 min' and paused_at is null`); n != 1 {
			t.Error("the next tick is not planned")
		}
	}
	if best > 50*time.Millisecond {
		t.Errorf("resumed and planned in %s at best, want 50ms at most", best)
	}
}

func TestAResumeOwesTheHeldTicksThatItIsAskedFor(t *testing.T) {
	t.Parallel()
	for owe, want := range map[schedule.CatchUp][]string{
		"none":   {"held paused 12T02:15 12T02:15 1", "held paused 13T02:15 13T02:15 1", "held paused 14T02:15 14T02:15 1"},
		"latest": {"held paused 12T02:15 12T02:15 1", "held paused 13T02:15 13T02:15 1", "open operator 14T02:15 14T02:15 1"},
		"all":    {"open operator 12T02:15 12T02:15 1", "open operator 13T02:15 13T02:15 1", "open operator 14T02:15 14T02:15 1"},
	} {
		r, pool := opened(t)
		now := time.Now().UTC()
		r.stored(t, Job{Name: "day", Schedule: "15 2 * * *"}, utcTime(t, "2026-09-10T23:00Z"))
		r.planAt(t, "day", utcTime(t, "2026-09-11T12:00Z"))
		if err := Pause(t.Context(), pool, "day", PauseConfig{Actor: "ann"}); err != nil {
			t.Fatal(err)
		}
		exec(t, pool, `update pawl.schedules set paused_at = '2026-09-11T12:00Z' returning 1`)
		r.planAt(t, "day", utcTime(t, "2026-09-14T12:00Z"))
		if n := exec(t, pool, `select count(*) from pawl.periods where state = 'open' and waits = 'paused'`); n != 1 {
			t.Error("what was owed before the pause doesn't wait")
		}
		exec(t, pool, `update pawl.schedules set watermark = $1 returning 1`, now)
		n, err := Resume(t.Context(), pool, "day", "ann", owe)
		if err != nil {
			t.Fatal(err)
		}
		if open := map[schedule.CatchUp]int{"none": 0, "latest": 1, "all": 3}[owe]; n != open {
			t.Errorf("%s: Resume = %d, want %d", owe, n, open)
		}
		want = append([]string{"open - 11T02:15 11T02:15 1"}, want...)
		if got := texts(t, pool, rowsSQL, "day"); !slices.Equal(got, want) {
			t.Errorf("%s: got %q\nwant %q", owe, got, want)
		}
		if n := exec(t, pool, `select count(*) from pawl.periods where waits is not null or state = 'held' and ended_at is null`); n != 0 {
			t.Errorf("%s: %d rows still wait", owe, n)
		}
	}
}

func TestAResumeTakesTheOwedTicksOffTheEndOfAStretch(t *testing.T) {
	t.Parallel()
	for owe, c := range map[schedule.CatchUp]struct{ held, open int64 }{"latest": {71, 1}, "all": {48, 24}} {
		r, pool := opened(t)
		now := time.Now().UTC().Truncate(time.Hour).Add(30 * time.Minute)
		r.stored(t, Job{Name: "h", Schedule: "0 * * * *"}, now)
		if err := Pause(t.Context(), pool, "h", PauseConfig{Actor: "ann"}); err != nil {
			t.Fatal(err)
		}
		exec(t, pool, `update pawl.schedules set paused_at = $1, watermark = $1 returning 1`, now.Add(-72*time.Hour))
		r.planAt(t, "h", now)
		exec(t, pool, `update pawl.schedules set watermark = now() returning 1`)
		if _, err := Resume(t.Context(), pool, "h", "ann", owe); err != nil {
			t.Fatal(err)
		}
		held := exec(t, pool, `select sum(ticks) from pawl.periods where state = 'held' and last_at < (select min(scheduled_at) from pawl.periods where state = 'open')`)
		open := exec(t, pool, `select count(*) from pawl.periods where state = 'open'`)
		// The window is 24 h from now, which is up to half an hour away from the now of the test.
		if held+open != 72 || open < c.open-1 || open > c.open+1 {
			t.Errorf("%s: %d held and %d owed of 72, want %d and %d", owe, held, open, c.held, c.open)
		}
	}
}

func TestAStretchThatIsOwedAsAWholeLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	now := time.Now().UTC().Truncate(time.Hour)
	r.stored(t, Job{Name: "h", Schedule: "0 * * * *"}, now)
	if err := Pause(t.Context(), pool, "h", PauseConfig{Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `update pawl.schedules set paused_at = $1, watermark = $1 returning 1`, now.Add(-3*time.Hour))
	r.planAt(t, "h", now)
	n, err := Resume(t.Context(), pool, "h", "ann", schedule.CatchUpAll)
	if err != nil || n != 3 {
		t.Fatalf("Resume = %d, %v, want 3", n, err)
	}
	if open := exec(t, pool, `select count(*) from pawl.periods where state = 'open' and ticks = 1 and last_at is null`); open != 3 {
		t.Errorf("%d periods are owed, want 3: %q", open, texts(t, pool, rowsSQL, "h"))
	}
}

func TestAPauseEndsByItself(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.stored(t, Job{Name: "h", Schedule: "@every 1h", Period: schedule.PerTick}, time.Now())
	err := Pause(t.Context(), pool, "h", PauseConfig{Actor: "ann", Until: time.Now().Add(time.Hour), Owe: schedule.CatchUpLatest})
	if err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.schedules where next_at <= paused_until`); n != 1 {
		t.Error("nobody looks at the schedule when its pause ends")
	}
	exec(t, pool, `update pawl.schedules set paused_at = now() - interval '10 h', watermark = now() - interval '10 h',
	  paused_until = now() - interval '4 h 30 min', next_at = now() - interval '9 h' returning 1`)
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.schedules where paused_at is null and next_at > now()`); n != 1 {
		t.Error("the job is still paused")
	}
	// 5 ticks lie in the pause, of which the last is owed; 4 or 5 after it, of which the last is caught up with.
	held := exec(t, pool, `select sum(ticks) from pawl.periods where state = 'held' and ended_at is not null`)
	open := exec(t, pool, `select count(*) from pawl.periods where state = 'open' and waits is null`)
	missed := exec(t, pool, `select sum(ticks) from pawl.periods where state = 'missed' and reason = 'catch_up'`)
	if held+open+missed != 10 || open != 2 {
		t.Errorf("%d held, %d owed, %d missed of 10 ticks, want 2 owed: %q", held, open, missed, texts(t, pool, rowsSQL, "h"))
	}
}
