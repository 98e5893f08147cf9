package schedule_test

import (
	"testing"
	"time"

	"pawl/jobs/schedule"
)

// The tests of this file each take a failure that another scheduler had.

// TestAWakeThatIsLateLosesNoTick: a planner that looks at exact seconds, or whose grace
// is a second, skips what it should have run 1.2 s before.
func TestAWakeThatIsLateLosesNoTick(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{"* * * * *", "*/5 * * * *", "0 * * * *", "15 2 * * *", "@every 1m", "@weekly", "@at 2026-09-16T02:15"} {
		s := parse(t, schedule.Spec{Expr: expr})
		tick := s.Next(utc(t, "2026-09-15T00:00Z"))
		for _, late := range []time.Duration{0, time.Millisecond, 1200 * time.Millisecond, 3 * time.Second, 59 * time.Second} {
			for _, catchUp := range []schedule.CatchUp{"", schedule.CatchUpNone, schedule.CatchUpLatest, schedule.CatchUpAll} {
				ticks, _ := s.Ticks(tick.Add(-1), tick.Add(late), schedule.Policy{CatchUp: catchUp})
				if len(ticks) != 1 || !ticks[0].At.Equal(tick) || ticks[0].Reason != "" {
					t.Errorf("%s, %s late, catch_up %q: %s", s, late, catchUp, show(ticks))
				}
			}
		}
	}
}

// TestAHandOverAtAnySecondLosesNoTick stops the planner at each second of a schedule of
// two minutes and starts another one up to a minute later.
func TestAHandOverAtAnySecondLosesNoTick(t *testing.T) {
	t.Parallel()
	from := utc(t, "2026-09-16T10:00Z")
	to := from.Add(10 * time.Minute)
	for _, expr := range []string{"*/2 * * * *", "@every 2m"} {
		s := parse(t, schedule.Spec{Expr: expr})
		for stop := range 120 {
			for _, away := range []time.Duration{time.Second, time.Minute} {
				var owed []time.Time
				for at := from.Add(-time.Second); at.Before(to); {
					now := at.Add(time.Second)
					if at.Equal(from.Add(time.Duration(stop) * time.Second)) {
						now = now.Add(away)
					}
					ticks, watermark := s.Ticks(at, now, schedule.Policy{})
					for _, k := range ticks {
						if k.Reason != "" {
							t.Fatalf("%s: stopped at %s for %s: %+v", s, at, away, k)
						}
						owed = append(owed, k.At)
					}
					at = watermark
				}
				if len(owed) != 6 || !owed[0].Equal(from) || !owed[5].Equal(to) {
					t.Fatalf("%s: stopped after %d s for %s: %d ticks, want 6", s, stop, away, len(owed))
				}
			}
		}
	}
}

// TestAMonthOfMinutesIsOneStretch: a minutely job that was away for 30 days owes its
// newest tick, and the rest costs one entry and no time.
func TestAMonthOfMinutesIsOneStretch(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Spec{Expr: "* * * * *", Zone: "Europe/Berlin"})
	now := utc(t, "2026-11-10T12:00Z").Add(time.Second)
	fastest := time.Hour
	for range 3 {
		start := time.Now()
		ticks, watermark := s.Ticks(now.AddDate(0, 0, -30), now, schedule.Policy{})
		fastest = min(fastest, time.Since(start))
		if got, want := show(ticks), "11T12:01..10T11:59 x43199 catch_up, 10T12:00 ok"; got != want || watermark != now {
			t.Fatalf("%s, watermark %s, want %s", got, watermark, want)
		}
	}
	if fastest > 50*time.Millisecond {
		t.Errorf("30 days took %s", fastest)
	}
}

// TestADownDayOfFiveMinutesRunsOnce: what replayed 288 paid runs elsewhere is one run
// that says how many it stands for.
func TestADownDayOfFiveMinutesRunsOnce(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Spec{Expr: "*/5 * * * *"})
	now := utc(t, "2026-09-17T00:00Z")
	ticks, _ := s.Ticks(now.AddDate(0, 0, -1), now, schedule.Policy{CatchUp: schedule.CatchUpLatest})
	if got, want := show(ticks), "16T00:05..16T23:55 x287 catch_up, 17T00:00 ok"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestAWeekendOutageOwesEveryDay by the defaults.
func TestAWeekendOutageOwesEveryDay(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Spec{Expr: "15 2 * * *", Zone: "Europe/Berlin"})
	ticks, _ := s.Ticks(utc(t, "2026-09-18T16:00Z"), utc(t, "2026-09-21T07:00Z"), schedule.Policy{})
	if got, want := show(ticks), "19T00:15 ok, 20T00:15 ok, 21T00:15 ok"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestHarmfulWhenLateIsNotRunLate: with none and start_within a wake runs what is due,
// and says of the rest why not.
func TestHarmfulWhenLateIsNotRunLate(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Spec{Expr: "15 2 * * *"})
	p := schedule.Policy{CatchUp: schedule.CatchUpNone, StartWithin: 2 * time.Minute}
	for now, want := range map[string]string{
		"2026-09-19T02:17Z": "18T02:15 catch_up, 19T02:15 ok",
		"2026-09-19T02:18Z": "18T02:15 catch_up, 19T02:15 too_late",
		"2026-09-19T09:00Z": "18T02:15 catch_up, 19T02:15 catch_up",
	} {
		ticks, _ := s.Ticks(utc(t, "2026-09-17T12:00Z"), utc(t, now), p)
		if got := show(ticks); got != want {
			t.Errorf("at %s: %s, want %s", now, got, want)
		}
	}
}

// TestAnEditRunsNothingBeforeItsOwnTime: at 15:00 a schedule of 22:00 becomes one of
// 10:00, whose watermark is then.
func TestAnEditRunsNothingBeforeItsOwnTime(t *testing.T) {
	t.Parallel()
	edited := parse(t, schedule.Spec{Expr: "0 10 * * *"})
	at := utc(t, "2026-09-16T15:00Z")
	if got, want := edited.Next(at), utc(t, "2026-09-17T10:00Z"); !got.Equal(want) {
		t.Errorf("Next = %s, want %s", got, want)
	}
	if ticks, _ := edited.Ticks(at, utc(t, "2026-09-17T09:59Z"), schedule.Policy{}); len(ticks) != 0 {
		t.Errorf("before its time: %s", show(ticks))
	}
}

// TestTheRepeatedHourHasOneKeyPerDayAndTwoPerHour: a second instant of a daily job's
// wall time could only find its period taken; hourly jobs owe both passes.
func TestTheRepeatedHourHasOneKeyPerDayAndTwoPerHour(t *testing.T) {
	t.Parallel()
	first, second := utc(t, "2026-10-25T00:30Z"), utc(t, "2026-10-25T01:30Z")
	day := parse(t, schedule.Spec{Expr: "30 2 * * *", Zone: "Europe/Berlin"})
	if a, b := day.Period(first), day.Period(second); a.Key != "2026-10-25" || a != b {
		t.Errorf("%+v and %+v, want one day", a, b)
	}
	if got, want := day.Next(first), utc(t, "2026-10-26T01:30Z"); !got.Equal(want) {
		t.Errorf("after the first pass: %s, want %s", got, want)
	}
	hour := parse(t, schedule.Spec{Expr: "30 * * * *", Zone: "Europe/Berlin"})
	if a, b := hour.Period(first).Key, hour.Period(second).Key; a != "2026-10-25T02+02:00" || b != "2026-10-25T02+01:00" {
		t.Errorf("%s and %s, want two hours", a, b)
	}
}

// TestMinutesRunThroughTheRepeatedHour: 60 more of them, without a silence.
func TestMinutesRunThroughTheRepeatedHour(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Spec{Expr: "* * * * *", Zone: "Europe/Berlin"})
	at := utc(t, "2026-10-24T22:00Z")
	for n := range 25 * 60 {
		next := s.Next(at)
		if next.Sub(at) != time.Minute {
			t.Fatalf("tick %d comes %s after the one before", n, next.Sub(at))
		}
		at = next
	}
	if got := at.In(s.Zone()).Format("2006-01-02T15:04"); got != "2026-10-26T00:00" {
		t.Errorf("25 hours of minutes end at %s", got)
	}
}

// TestEachJobHasItsOwnZone: eight in the morning in New York, summer and winter.
func TestEachJobHasItsOwnZone(t *testing.T) {
	t.Parallel()
	for zone, want := range map[string][2]string{
		"America/New_York": {"2026-07-01T12:00Z", "2026-12-01T13:00Z"},
		"Asia/Kolkata":     {"2026-07-01T02:30Z", "2026-12-01T02:30Z"},
		"":                 {"2026-07-01T08:00Z", "2026-12-01T08:00Z"},
	} {
		s := parse(t, schedule.Spec{Expr: "0 8 * * *", Zone: zone})
		summer, winter := s.Next(utc(t, "2026-07-01T00:00Z")), s.Next(utc(t, "2026-12-01T00:00Z"))
		if !summer.Equal(utc(t, want[0])) || !winter.Equal(utc(t, want[1])) {
			t.Errorf("%s: %s and %s, want %v", s, summer, winter, want)
		}
	}
}

// TestAllZonesAnswerForFortyYears asks in every zone, around every change of clocks and
// on the first of each month, for schedules that elsewhere loop for ever in a gap. Each
// answer takes less than a millisecond.
func TestAllZonesAnswerForFortyYears(t *testing.T) {
	t.Parallel()
	exprs := []string{"* * * * *", "30 2 * * *", "0 0 * * *", "0 */3 * * 1-5", "0 0 31 * *", "30 23 * * 6", "0 3 29 2 *", "@every 37m"}
	zones := schedule.ZoneNames()
	asked := 0
	for i, zone := range zones {
		s := parse(t, schedule.Spec{Expr: exprs[i%len(exprs)], Zone: zone})
		u := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		for u.Year() < 2040 {
			_, change := u.In(s.Zone()).ZoneBounds()
			month := u.AddDate(0, 1, 0)
			for _, at := range []time.Time{u, change.Add(-90 * time.Minute), change.Add(-1), change, change.Add(30 * time.Minute)} {
				if at.Before(u) || at.After(month) {
					continue
				}
				asked++
				if next := quick(t, s, at); !next.After(at) {
					t.Fatalf("%s: Next(%s) = %s", s, at, next)
				}
			}
			u = month
		}
	}
	t.Logf("%d zones, %d questions", len(zones), asked)
}

// quick asks for the next tick, again where the machine was busy meanwhile.
func quick(t *testing.T, s schedule.Schedule, at time.Time) time.Time {
	t.Helper()
	const most = time.Millisecond
	var spent time.Duration
	for range 10 {
		start := time.Now()
		next := s.Next(at)
		if spent = time.Since(start); spent < most {
			return next
		}
	}
	t.Fatalf("%s: Next(%s) took %s", s, at, spent)
	return time.Time{}
}

// TestNextKeepsItsBudget holds the fastest of some rounds to 50 µs for a daily job and
// 20 µs for a minutely one; BenchmarkNext shows the figures.
func TestNextKeepsItsBudget(t *testing.T) {
	t.Parallel()
	for expr, most := range map[string]time.Duration{"30 2 * * *": 50 * time.Microsecond, "* * * * *": 20 * time.Microsecond} {
		s := parse(t, schedule.Spec{Expr: expr, Zone: "America/New_York"})
		fastest := time.Hour
		for range 20 {
			const calls = 100
			at, start := utc(t, "2026-03-01T00:00Z"), time.Now()
			for range calls {
				at = s.Next(at)
			}
			fastest = min(fastest, time.Since(start)/calls)
		}
		if fastest > most {
			t.Errorf("%s: %s, want at most %s", s, fastest, most)
		}
	}
}
