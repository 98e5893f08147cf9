package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

// parse is Parse for specs that must be good.
func parse(t testing.TB, spec schedule.Spec) schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(spec)
	if err != nil {
		t.Fatalf("Parse(%+v) = %v", spec, err)
	}
	return s
}

func utc(t testing.TB, text string) time.Time {
	t.Helper()
	u, err := time.Parse("2006-01-02T15:04Z", text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// ticksOfDay returns the ticks on one local date, found by Next alone.
func ticksOfDay(s schedule.Schedule, day string) []time.Time {
	d, _ := time.Parse("2006-01-02", day)
	var ticks []time.Time
	for u := s.Next(d.Add(-30 * time.Hour)); !u.IsZero() && u.Before(d.Add(60*time.Hour)); u = s.Next(u) {
		if u.In(s.Zone()).Format("2006-01-02") == day {
			ticks = append(ticks, u)
		}
	}
	return ticks
}

func TestChangesOfClocksFollowTheContract(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr, zone, day string
		count           int
		first           string // "" is not checked
	}{
		{"0 2 * * *", "America/Los_Angeles", "2025-03-09", 1, "2025-03-09T10:00Z"},
		{"30 2 * * *", "America/Los_Angeles", "2025-03-09", 1, "2025-03-09T10:00Z"},
		{"30 1 * * *", "America/New_York", "2025-11-02", 1, "2025-11-02T05:30Z"},
		{"30 2 * * *", "Europe/Berlin", "2025-10-26", 1, "2025-10-26T00:30Z"},
		{"*/15 * * * *", "Europe/Berlin", "2025-10-26", 100, ""},
		{"0 * * * *", "Europe/Berlin", "2025-03-30", 23, ""},
		{"0 */2 * * *", "Europe/Berlin", "2025-10-26", 13, ""},
		{"0 */2 * * *", "Europe/Berlin", "2025-03-30", 11, ""},
		{"* 2 * * *", "Europe/Berlin", "2025-10-26", 60, "2025-10-26T00:00Z"},
		{"* 2 * * *", "Europe/Berlin", "2025-03-30", 1, "2025-03-30T01:00Z"},
		{"0,30 1-3 * * *", "Europe/Berlin", "2025-03-30", 4, ""},
		{"0,30 1-3 * * *", "Europe/Berlin", "2025-10-26", 6, ""},
		{"0 0 * * *", "Africa/Cairo", "2025-04-25", 1, "2025-04-24T22:00Z"},
		{"15 2 * * *", "Australia/Lord_Howe", "2025-10-05", 1, "2025-10-04T15:30Z"},
		// Beyond the contract: midnight gaps and every minute of a repeated hour.
		{"0 0 * * *", "America/Santiago", "2025-09-07", 1, "2025-09-07T04:00Z"},
		{"0 0 * * *", "Asia/Beirut", "2025-03-30", 1, "2025-03-29T22:00Z"},
		{"* * * * *", "Europe/Berlin", "2025-10-26", 25 * 60, ""},
		{"* * * * *", "Europe/Berlin", "2025-03-30", 23 * 60, ""},
		{"0 0-23 * * *", "Europe/Berlin", "2025-10-26", 24, ""},
		{"0 0-23 * * *", "Europe/Berlin", "2025-03-30", 23, ""}, // 02:00 runs at 03:00, with the 03:00 one
		{"@at 2025-03-30T02:30", "Europe/Berlin", "2025-03-30", 1, "2025-03-30T01:00Z"},
		{"@at 2025-10-26T02:30", "Europe/Berlin", "2025-10-26", 1, "2025-10-26T00:30Z"},
		{"@every 1h", "Europe/Berlin", "2025-10-26", 25, ""},
	} {
		s := parse(t, schedule.Spec{Expr: c.expr, Zone: c.zone})
		ticks := ticksOfDay(s, c.day)
		if len(ticks) != c.count {
			t.Errorf("%s has %d ticks on %s, want %d", s, len(ticks), c.day, c.count)
			continue
		}
		if c.first != "" && !ticks[0].Equal(utc(t, c.first)) {
			t.Errorf("%s is first due at %s on %s, want %s", s, ticks[0], c.day, c.first)
		}
	}
}

func TestGapAndOverlapCanBeChosen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, gap, overlap, day string
		want                    []string
	}{
		{"skipped in the gap", "skip", "", "2025-03-30", nil},
		{"after the gap", "after", "", "2025-03-30", []string{"2025-03-30T01:00Z"}},
		{"first pass", "", "first", "2025-10-26", []string{"2025-10-26T00:30Z"}},
		{"second pass", "", "second", "2025-10-26", []string{"2025-10-26T01:30Z"}},
		{"both passes", "", "both", "2025-10-26", []string{"2025-10-26T00:30Z", "2025-10-26T01:30Z"}},
		{"an ordinary day", "skip", "second", "2025-10-27", []string{"2025-10-27T01:30Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := utc(t, c.day+"T00:00Z")
			yearly := fmt.Sprintf("30 2 %d %d *", d.Day(), d.Month())
			for _, expr := range []string{"30 2 * * *", yearly, "@at " + c.day + "T02:30"} {
				if c.gap == "skip" && c.want == nil && expr[0] == '@' {
					continue // refused, see TestBadSpecsAreRefusedInOneSentence
				}
				s := parse(t, schedule.Spec{Expr: expr, Zone: "Europe/Berlin", Period: schedule.PerTick, Gap: c.gap, Overlap: c.overlap})
				got := ticksOfDay(s, c.day)
				if len(got) != len(c.want) {
					t.Fatalf("%s on %s: %v, want %v", s, c.day, got, c.want)
				}
				for i := range got {
					if !got[i].Equal(utc(t, c.want[i])) {
						t.Errorf("%s on %s: %v, want %v", s, c.day, got, c.want)
					}
				}
			}
		})
	}
}

func TestEveryIsAnchoredToTheEpoch(t *testing.T) {
	t.Parallel()
	week := parse(t, schedule.Spec{Expr: "@every 168h"})
	want := utc(t, "2026-09-17T00:00Z") // a Thursday, like 1970-01-01
	// A restart every day, each asking from its own now, finds the same instant.
	for day := range 7 {
		if got := week.Next(want.AddDate(0, 0, -1-day).Add(7 * time.Minute)); !got.Equal(want) {
			t.Errorf("asked %d days before: %s, want %s", day+1, got, want)
		}
	}
	shifted := parse(t, schedule.Spec{Expr: "@every 15m", EveryOffset: 5 * time.Minute})
	if got, want := shifted.Next(utc(t, "2026-09-16T10:05Z")), utc(t, "2026-09-16T10:20Z"); !got.Equal(want) {
		t.Errorf("with an offset of 5m: %s, want %s", got, want)
	}
	if got, want := shifted.Next(time.Date(1969, 12, 31, 23, 54, 0, 0, time.UTC)), time.Date(1970, 1, 1, 0, 5, 0, 0, time.UTC); got.After(want) {
		t.Errorf("before the epoch: %s is after %s", got, want)
	}
}

func TestAtIsDueOnce(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Spec{Expr: "@at 2031-01-02 03:04:05", Zone: "Asia/Kolkata"})
	at := time.Date(2031, 1, 1, 21, 34, 5, 0, time.UTC)
	if got := s.Next(time.Time{}); !got.Equal(at) {
		t.Errorf("Next = %s, want %s", got, at)
	}
	if got := s.Next(at); !got.IsZero() {
		t.Errorf("Next after it = %s, want none", got)
	}
}

func TestRareDatesAreFound(t *testing.T) {
	t.Parallel()
	leap := parse(t, schedule.Spec{Expr: "0 3 29 2 1", DayMatch: "and"})
	want := time.Date(2044, 2, 29, 3, 0, 0, 0, time.UTC) // a Monday, 28 years after 2016
	if got := leap.Next(utc(t, "2016-03-01T00:00Z")); !got.Equal(want) {
		t.Errorf("Next = %s, want %s", got, want)
	}
	if got := leap.Next(utc(t, "2072-03-01T00:00Z")); got.IsZero() {
		t.Error("none is found across the year 2100")
	}
}

func TestDayMatchSaysOrOrAnd(t *testing.T) {
	t.Parallel()
	after := utc(t, "2026-09-01T00:00Z")
	for match, want := range map[string]string{"or": "2026-09-04T00:00Z", "and": "2026-11-13T00:00Z"} {
		s := parse(t, schedule.Spec{Expr: "0 0 13 * 5", DayMatch: match})
		if got := s.Next(after); !got.Equal(utc(t, want)) {
			t.Errorf("%s: %s, want %s", match, got, want)
		}
	}
}

func TestEndsOfTimeHaveNoNext(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{"* * * * *", "0 0 29 2 *", "@every 1s", "@manual"} {
		s := parse(t, schedule.Spec{Expr: expr})
		if got := s.Next(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)); !got.IsZero() {
			t.Errorf("%s: %s after the year 9999", s, got)
		}
		s.Next(time.Unix(1<<62, 0))
		s.Next(time.Unix(-1<<62, 0))
	}
	if got := (schedule.Schedule{}).Next(time.Now()); !got.IsZero() {
		t.Errorf("the zero Schedule is due at %s", got)
	}
}
