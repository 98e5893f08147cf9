package jobs

import (
	"slices"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

// What the planner makes of a change of clocks: one row for each tick of the contract's vectors.
func TestThePlannerOwesEachTickOfADayOnWhichTheClocksChange(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	for i, c := range []struct {
		expr, zone, day string
		want            int64
		first           string // UTC
	}{
		{"0 2 * * *", "America/Los_Angeles", "2025-03-09", 1, "2025-03-09T10:00Z"},
		{"30 1 * * *", "America/New_York", "2025-11-02", 1, "2025-11-02T05:30Z"},
		{"30 2 * * *", "Europe/Berlin", "2025-10-26", 1, "2025-10-26T00:30Z"},
		{"*/15 * * * *", "Europe/Berlin", "2025-10-26", 100, "2025-10-25T22:00Z"},
		{"0 * * * *", "Europe/Berlin", "2025-03-30", 23, "2025-03-29T23:00Z"},
		{"0 */2 * * *", "Europe/Berlin", "2025-10-26", 13, "2025-10-25T22:00Z"},
		{"* 2 * * *", "Europe/Berlin", "2025-10-26", 60, "2025-10-26T00:00Z"},
		{"0 0 * * *", "Africa/Cairo", "2025-04-25", 1, "2025-04-24T22:00Z"},
		{"15 2 * * *", "Australia/Lord_Howe", "2025-10-05", 1, "2025-10-04T15:30Z"},
	} {
		loc, err := schedule.Parse(schedule.Spec{Expr: "@daily", Zone: c.zone})
		if err != nil {
			t.Fatal(err)
		}
		day, err := time.Parse(time.DateOnly, c.day)
		if err != nil {
			t.Fatal(err)
		}
		from := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, loc.Zone())
		next := time.Date(day.Year(), day.Month(), day.Day()+1, 0, 0, 0, 0, loc.Zone())
		name := "d" + string(rune('a'+i))
		r.stored(t, Job{
			Name: name, Schedule: c.expr, Timezone: c.zone, CatchUp: schedule.CatchUpAll, CatchUpWindow: 24 * time.Hour * 10_000, CatchUpMax: 7,
		}, from.Add(-2*time.Hour))
		for at := from.Add(-time.Minute); at.Before(next); at = at.Add(5 * time.Hour) { // in passes that end anywhere
			r.planAt(t, name, at)
		}
		r.planAt(t, name, next.Add(-time.Second))
		where := ` from pawl.periods where job = $1 and state = 'open' and scheduled_at >= $2 and scheduled_at < $3`
		from = utcTime(t, c.first)
		if n := exec(t, pool, `select count(*)`+where, name, from, next); n != c.want {
			t.Errorf("%s in %s on %s: %d rows, want %d", c.expr, c.zone, c.day, n, c.want)
		}
		if n := exec(t, pool, `select count(*)`+where+` and scheduled_at = $2`, name, from, next); n != 1 {
			t.Errorf("%s in %s on %s: the first is not at %s", c.expr, c.zone, c.day, c.first)
		}
	}
}

func TestEachFieldOfTheScheduleReachesThePlanner(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	for name, c := range map[string]struct {
		job         Job
		after, upTo string
		want        []string
	}{
		"seconds": {
			Job{Schedule: "30 * * * * *", Seconds: true, CatchUp: "all"},
			"2026-09-16T00:00Z", "2026-09-16T00:02Z",
			[]string{"2026-09-16T00:00:30Z", "2026-09-16T00:01:30Z"},
		},
		"day_match": {
			Job{Schedule: "0 0 13 * 5", DayMatch: "and", CatchUp: "all"},
			"2026-01-01T00:00Z", "2026-12-01T00:00Z",
			[]string{"2026-02-13T00:00:00Z", "2026-03-13T00:00:00Z", "2026-11-13T00:00:00Z"},
		},
		"gap skip": {
			Job{Schedule: "30 2 * * *", Timezone: "Europe/Berlin", DST: DST{Gap: "skip"}},
			"2025-03-29T00:00Z", "2025-03-31T12:00Z",
			[]string{"2025-03-29", "2025-03-31"},
		},
		"overlap second": {
			Job{Schedule: "30 2 * * *", Period: "tick", Timezone: "Europe/Berlin", DST: DST{Overlap: "second"}, CatchUp: "all"},
			"2025-10-25T12:00Z", "2025-10-26T12:00Z",
			[]string{"2025-10-26T01:30:00Z"},
		},
		"every offset": {
			Job{Schedule: "@every 1h", Period: "tick", EveryOffset: 7 * time.Minute, CatchUp: "all"},
			"2026-09-16T00:00Z", "2026-09-16T02:00Z",
			[]string{"2026-09-16T00:07:00Z", "2026-09-16T01:07:00Z"},
		},
	} {
		c.job.Name, c.job.CatchUpWindow = "n"+string(rune('a'+len(name))), 24*time.Hour*10_000
		r.stored(t, c.job, utcTime(t, c.after))
		r.planAt(t, c.job.Name, utcTime(t, c.upTo))
		if got := texts(t, pool, `select key from pawl.periods where job = $1 and state = 'open' order by scheduled_at`, c.job.Name); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// At 15:00 a job of 22:00 becomes one of 10:00: nothing runs before 10:00 of the next day.
func TestAnEditRunsNothingForTheTimeBeforeIt(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	now := time.Now().UTC()
	at := func(d time.Duration) string { return now.Add(d).Format("4 15 * * *") }
	j := r.stored(t, Job{Name: "mail", Schedule: at(7 * time.Hour)}, now.Add(-time.Minute))
	j.Schedule = at(-5 * time.Hour)
	if err := r.registerJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where state = 'open'`); n != 0 {
		t.Errorf("%d periods are owed by an edit", n)
	}
	if n := exec(t, pool, `select count(*) from pawl.schedules where next_at between now() + interval '18 h' and now() + interval '19 h'`); n != 1 {
		t.Error("the next tick isn't that of the new definition")
	}
}

// A planner is killed a second before a tick, and another one starts half a minute, or a weekend, after it.
func TestATickWhileNobodyPlansIsOwedForItsOwnTime(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	tick := utcTime(t, "2026-09-12T10:00Z")
	for name, late := range map[string]time.Duration{"s": 30 * time.Second, "m": 9 * time.Minute, "w": 60 * time.Hour} {
		r.stored(t, Job{Name: "day" + name, Schedule: "0 10 * * *"}, tick.Add(-time.Second))
		r.planAt(t, "day"+name, tick.Add(late))
		if n := exec(t, pool, `select count(*) from pawl.periods where job = $1 and state = 'open' and scheduled_at = $2`, "day"+name, tick); n != 1 {
			t.Errorf("%s late: the tick is not owed", late)
		}
	}
}

// Deploys come more often than ticks: the tick is counted from the epoch, not from when a process started.
func TestALongIntervalOutlivesDailyRestarts(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	j := r.stored(t, Job{Name: "week", Schedule: "@every 168h"}, utcTime(t, "2026-09-02T12:00Z"))
	for day := range 15 {
		if err := r.registerJob(t.Context(), j); err != nil { // as each start does
			t.Fatal(err)
		}
		r.planAt(t, "week", utcTime(t, "2026-09-03T11:00Z").AddDate(0, 0, day))
	}
	want := []string{"2026-09-03T00:00:00Z", "2026-09-10T00:00:00Z", "2026-09-17T00:00:00Z"}
	if got := texts(t, pool, `select key from pawl.periods where state = 'open' order by 1`); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Planners take turns, each stopped at any second of a schedule of two minutes.
func TestNoTickIsLostOrDoubledWhereverAPlannerIsStopped(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.stored(t, Job{Name: "two", Schedule: "*/2 * * * *"}, utcTime(t, "2026-09-16T00:00Z"))
	at := utcTime(t, "2026-09-16T00:00Z")
	for second := range 120 {
		at = at.Add(time.Duration(1+second) * time.Second) // every phase, and gaps of up to two minutes
		r.planAt(t, "two", at)
	}
	minutes := int64(at.Sub(utcTime(t, "2026-09-16T00:00Z")) / (2 * time.Minute))
	if n := exec(t, pool, `select sum(ticks) from pawl.periods`); n != minutes {
		t.Errorf("%d ticks, want %d", n, minutes)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where state = 'open'`); n != minutes {
		t.Errorf("%d ticks are owed, want all %d: none is later than the next one", n, minutes)
	}
}

// A day of downtime on a job of every five minutes costs one run, and the row says how many ticks it stands for.
func TestADayOfDowntimeIsNoFlood(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.stored(t, Job{Name: "five", Schedule: "*/5 * * * *"}, utcTime(t, "2026-09-16T00:00Z"))
	r.planAt(t, "five", utcTime(t, "2026-09-17T00:00Z"))
	want := []string{"missed catch_up 16T00:05 16T23:55 287", "open - 17T00:00 17T00:00 1"}
	if got := texts(t, pool, rowsSQL, "five"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWorkThatIsWrongWhenLateDoesNotRunLate(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.stored(t, Job{Name: "none", Schedule: "0 10 * * *", CatchUp: schedule.CatchUpNone, StartWithin: 5 * time.Minute}, utcTime(t, "2026-09-15T00:00Z"))
	r.planAt(t, "none", utcTime(t, "2026-09-15T10:06Z"))
	r.planAt(t, "none", utcTime(t, "2026-09-16T10:04Z"))
	r.planAt(t, "none", utcTime(t, "2026-09-17T10:20Z"))
	want := []string{"missed too_late 15T10:00 15T10:00 1", "open - 16T10:00 16T10:00 1", "missed catch_up 17T10:00 17T10:00 1"}
	if got := texts(t, pool, rowsSQL, "none"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The history of runs is deleted, and somebody plans from an old watermark: what was complete stays so.
func TestAReplayedTickIsRefusedWithoutAnyHistory(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	says := &said{}
	r.log = says.logger()
	keys := r.chain(t, 3, Job{})
	for range keys {
		r.goes(t, stateComplete)
	}
	exec(t, pool, `with a as (delete from pawl.runs), b as (delete from pawl.tenures), c as (delete from pawl.river_job) select 1`)
	exec(t, pool, `update pawl.schedules set watermark = watermark - interval '10 d', next_at = now() returning 1`)
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where key = any ($1) and state = 'complete' and revision = 1`, keys); n != 3 {
		t.Errorf("%d of 3 periods are still complete", n)
	}
	if got := r.goes(t, stateComplete); slices.Contains(keys, got) {
		t.Errorf("%s runs again", got)
	}
	if n := says.count("level=ERROR"); n != 0 {
		t.Errorf("the loser of a race says so %d times", n)
	}
}
