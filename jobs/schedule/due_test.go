package schedule_test

import (
	"strings"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

func TestDueByIsAfterTheSchedulesOwnTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr, due, want string // want "" is accepted, and printed as it was read
	}{
		{"15 2 * * *", "06:00", ""},
		{"15 2 * * *", "02:16", ""},
		{"15 2 * * *", "06:00+1d", ""},
		{"15 2 * * *", "00:00+1d", ""},
		{"15 2 10 * *", "23:59+31d", ""},
		{"@every 15m", "06:00+1d", ""},
		{"@at 2026-09-16T02:15", "02:16", ""},
		{"*/15 8-17 * * *", "18:00", ""},
		{"15 2 * * *", "02:15", `due_by: "02:15" is not after 02:15, when "15 2 * * *" may run; write a later time, or "02:15+1d" for the day after`},
		{"*/15 8-17 * * *", "17:45", `is not after 17:45, when`},
		{"*/15 * * * *", "06:00", `is not after 23:45, when`},
		{"@every 15m", "06:00", `is not after 23:59:59, when "@every 15m" may run`},
		{"@at 2026-09-16T02:15", "02:15", `is not after 02:15, when`},
		{"15 2 * * *", "00:00", `is not after 02:15`},
		{"@manual", "06:00", `due_by: "06:00" has no tick to count from, since the schedule is @manual; remove it`},
		{"15 2 * * *", "6:00", `due_by: "6:00" is not a local time; write "06:00", or "06:00+1d" for the next day (at most +31d)`},
		{"15 2 * * *", "24:00", `is not a local time`},
		{"15 2 * * *", "06:00:00", `is not a local time`},
		{"15 2 * * *", "06:00+1", `is not a local time`},
		{"15 2 * * *", "06:00+0d", `is not a local time`},
		{"15 2 * * *", "06:00+-1d", `is not a local time`},
		{"15 2 * * *", "06:00+01d", `is not a local time`},
		{"15 2 * * *", "06:00+32d", `is not a local time`},
		{"15 2 * * *", "06:00-1d", `is not a local time`},
		{"15 2 * * *", "06:00+", `is not a local time`},
		{"15 2 * * *", "later", `is not a local time`},
	} {
		s := parse(t, schedule.Spec{Expr: c.expr, Zone: "Europe/Berlin"})
		d, err := s.ParseDueBy(c.due)
		switch {
		case c.want == "" && (err != nil || d.String() != c.due):
			t.Errorf("%s: ParseDueBy(%q) = %q, %v", s, c.due, d, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: ParseDueBy(%q) = %q, %v, want %s", s, c.due, d, err, c.want)
		}
	}
	if d, err := (schedule.Schedule{}).ParseDueBy(""); d != 0 || err != nil || d.String() != "" {
		t.Errorf(`ParseDueBy("") = %v, %v, want none`, d, err)
	}
}

func TestDueAtIsTheWallTimeOfTheTicksDate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, expr, zone, overlap, due, tick, want string }{
		{"that day", "15 2 * * *", "Europe/Berlin", "", "06:00", "2026-09-16T00:15Z", "2026-09-16T04:00Z"},
		{"the day after", "15 2 * * *", "Europe/Berlin", "", "06:00+1d", "2026-09-16T00:15Z", "2026-09-17T04:00Z"},
		{"the tick's local date", "15 2 * * *", "Asia/Tokyo", "", "06:00", "2026-09-15T17:15Z", "2026-09-15T21:00Z"},
		{"after the clocks changed", "15 1 * * *", "Europe/Berlin", "", "06:00", "2027-03-28T00:15Z", "2027-03-28T04:00Z"},
		{"over a change to the next day", "15 3 * * *", "Europe/Berlin", "", "06:00+1d", "2026-10-24T01:15Z", "2026-10-25T05:00Z"},
		{"in the gap: as much later", "15 1 * * *", "Europe/Berlin", "", "02:20", "2027-03-28T00:15Z", "2027-03-28T01:20Z"},
		{"tick and due time in the gap", "15 2 * * *", "Europe/Berlin", "", "02:45", "2027-03-28T01:00Z", "2027-03-28T01:30Z"},
		{"the tick moved to its due time", "30 2 * * *", "Europe/Berlin", "", "03:00", "2027-03-28T01:00Z", "2027-03-28T01:30Z"},
		{"the tick moved, due later", "30 2 * * *", "Europe/Berlin", "", "03:10", "2027-03-28T01:00Z", "2027-03-28T01:10Z"},
		{"repeated: the first pass", "15 1 * * *", "Europe/Berlin", "", "02:30", "2026-10-24T23:15Z", "2026-10-25T00:30Z"},
		{"in the same pass as a first tick", "15 2 * * *", "Europe/Berlin", "", "02:30", "2026-10-25T00:15Z", "2026-10-25T00:30Z"},
		{"in the same pass as a second tick", "15 2 * * *", "Europe/Berlin", "second", "02:30", "2026-10-25T01:15Z", "2026-10-25T01:30Z"},
		{"after the overlap", "15 2 * * *", "Europe/Berlin", "", "03:00", "2026-10-25T00:15Z", "2026-10-25T02:00Z"},
		{"half an hour of gap", "15 2 * * *", "Australia/Lord_Howe", "", "02:30", "2025-10-04T15:30Z", "2025-10-04T15:45Z"},
		{"midnight in the gap", "0 0 * * *", "Africa/Cairo", "", "00:30", "2025-04-24T22:00Z", "2025-04-24T22:30Z"},
		{"due at a missing midnight", "0 23 * * *", "Africa/Cairo", "", "00:00+1d", "2025-04-24T21:00Z", "2025-04-24T22:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := parse(t, schedule.Spec{Expr: c.expr, Zone: c.zone, Overlap: c.overlap})
			tick := utc(t, c.tick)
			if next := s.Next(tick.Add(-1)); !next.Equal(tick) {
				t.Fatalf("%s is no tick, %s is", tick, next)
			}
			d, err := s.ParseDueBy(c.due)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.DueAt(d, tick); !got.Equal(utc(t, c.want)) {
				t.Errorf("DueAt = %s, want %s", got, c.want)
			}
			if got := s.DueAt(0, tick); !got.IsZero() {
				t.Errorf("without due_by: %s", got)
			}
		})
	}
}

// TestDueAtIsNeverBeforeItsTick asks for every tick of two years in zones that change
// their clocks at odd times.
func TestDueAtIsNeverBeforeItsTick(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Africa/Cairo", "Antarctica/Troll", "Africa/Casablanca"} {
		for _, c := range []struct{ expr, due string }{
			{"15 0 * * *", "00:16"}, {"59 1 * * *", "02:00"}, {"30 2 * * *", "02:31"}, {"0 2 * * *", "03:00"}, {"45 23 * * *", "00:00+1d"}, {"*/7 0-2 * * *", "02:57"},
		} {
			for _, overlap := range []string{"first", "second", "both"} {
				s := parse(t, schedule.Spec{Expr: c.expr, Zone: zone, Overlap: overlap, Period: schedule.PerTick})
				d, err := s.ParseDueBy(c.due)
				if err != nil {
					t.Fatal(err)
				}
				for at := s.Next(utc(t, "2025-01-01T00:00Z")); at.Year() < 2027; at = s.Next(at) {
					if due := s.DueAt(d, at); !due.After(at) || due.Sub(at) > 6*time.Hour {
						t.Errorf("%s: the tick %s is due by %s", s, at, due)
					}
				}
			}
		}
	}
}

func TestLateIsTenMinutesOrHalfTheTimeToTheNextTick(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr string
		want time.Duration
	}{
		{"15 2 * * *", 10 * time.Minute},
		{"@hourly", 10 * time.Minute},
		{"@weekly", 10 * time.Minute},
		{"@every 1h", 10 * time.Minute},
		{"@every 15m", 7*time.Minute + 30*time.Second},
		{"*/5 * * * *", 2*time.Minute + 30*time.Second},
		{"* * * * *", 30 * time.Second},
		{"@every 1s", 500 * time.Millisecond},
		{"@at 2026-09-16T00:00", 10 * time.Minute},
		{"@manual", 10 * time.Minute},
	} {
		s := parse(t, schedule.Spec{Expr: c.expr})
		if got := s.LateAfter(utc(t, "2026-09-16T00:00Z")); got != c.want {
			t.Errorf("%s: %s, want %s", s, got, c.want)
		}
	}
}
