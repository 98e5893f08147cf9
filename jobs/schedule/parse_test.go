package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

func TestBadSpecsAreRefusedInOneSentence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec schedule.Spec
		want string
	}{
		{schedule.Spec{}, `schedule: "" is empty; write five cron fields`},
		{schedule.Spec{Expr: "15 2 * * 1-5 *"}, `schedule: "15 2 * * 1-5 *" has 6 fields; write 5, or set seconds: true (then the first is seconds)`},
		{schedule.Spec{Expr: "15 2 * *"}, `has 4 fields; write 5`},
		{schedule.Spec{Expr: "x"}, `has 1 field; write 5`},
		{schedule.Spec{Expr: "15 2 * * *", Seconds: true}, `has 5 fields but seconds: true wants 6; put the seconds first`},
		{schedule.Spec{Expr: "0 0 30 2 *"}, `schedule: "0 0 30 2 *" never matches any date; write a day that the month has`},
		{schedule.Spec{Expr: "0 0 31 4,6,9,11 *"}, `never matches any date`},
		{schedule.Spec{Expr: "0 0 13 * 5"}, `sets day-of-month and day-of-week, which cron would OR; say day_match: or | and`},
		{schedule.Spec{Expr: "0 0 */2 * 1"}, `sets day-of-month and day-of-week`},
		{schedule.Spec{Expr: "CRON_TZ=UTC"}, `schedule: "CRON_TZ=UTC" names a time zone; put the zone in the timezone field`},
		{schedule.Spec{Expr: "TZ=Europe/Berlin 0 2 * * *"}, `put the zone in the timezone field`},
		{schedule.Spec{Expr: "@every 0s"}, `schedule: "@every 0s" is not an interval; write 1s or more`},
		{schedule.Spec{Expr: "@every -5s"}, `"@every -5s" is not an interval; write 1s or more`},
		{schedule.Spec{Expr: "@every 1ms"}, `"@every 1ms" is not in whole seconds; write 1s or more`},
		{schedule.Spec{Expr: "@every 1.5s"}, `"@every 1.5s" is not in whole seconds`},
		{schedule.Spec{Expr: "@every 5"}, `has no duration that can be read; write whole seconds`},
		{schedule.Spec{Expr: "@every"}, `has no duration that can be read`},
		{schedule.Spec{Expr: "@every 1m", EveryOffset: time.Minute}, `offset: "1m0s" doesn't fit "@every 1m"; write whole seconds from 0s`},
		{schedule.Spec{Expr: "@daily", EveryOffset: time.Minute}, `offset: "1m0s" has no @every to move`},
		{schedule.Spec{Expr: "@fortnightly"}, `is not a known name; write @hourly`},
		{schedule.Spec{Expr: "@at noon"}, `is not a local time; write "@at 2026-09-16T02:15"`},
		{schedule.Spec{Expr: "@at 2026-09-16T02:15+02:00"}, `is not a local time`},
		{schedule.Spec{Expr: "@at 2025-03-30T02:30", Zone: "Europe/Berlin", Gap: "skip"}, `does not exist in Europe/Berlin`},
		{schedule.Spec{Expr: "61 * * * *"}, `has the minute "61", which is not a value, list, range or step of it; write 0-59`},
		{schedule.Spec{Expr: "0 24 * * *"}, `has the hour "24"`},
		{schedule.Spec{Expr: "0 0 * * 7"}, `has the day-of-week "7", which is not a value, list, range or step of it; write 0-6 or SUN-SAT (Sunday is 0)`},
		{schedule.Spec{Expr: "5-1 * * * *"}, `has the minute "5-1"`},
		{schedule.Spec{Expr: ", * * * *"}, `a list with an empty item`},
		{schedule.Spec{Expr: "1,,2 * * * *"}, `a list with an empty item`},
		{schedule.Spec{Expr: "*-5 * * * *"}, `nothing may follow the star but a step`},
		{schedule.Spec{Expr: "*/0 * * * *"}, `whose step is not a number from 1 to 60`},
		{schedule.Spec{Expr: "*/90 * * * *"}, `whose step is not a number from 1 to 60`},
		{schedule.Spec{Expr: "@daily", Zone: "Europe/Berlinn"}, `timezone: "Europe/Berlinn" is not an IANA zone; did you mean "Europe/Berlin"?`},
		{schedule.Spec{Expr: "@daily", Zone: "europe/berlin"}, `did you mean "Europe/Berlin"?`},
		{schedule.Spec{Expr: "@daily", Zone: "Berlin"}, `did you mean "Europe/Berlin"?`},
		{schedule.Spec{Expr: "@daily", Zone: "Mars/Olympus_Mons"}, `is not an IANA zone; write a name like "Europe/Berlin" or "UTC"`},
		{schedule.Spec{Expr: "@daily", Zone: "../etc/passwd"}, `is not an IANA zone`},
		{schedule.Spec{Expr: "@daily", Zone: "Local"}, `timezone: "Local" is the host's zone, which differs between replicas; write an IANA name`},
		{schedule.Spec{Expr: "@daily", Zone: "localtime"}, `is the host's zone`},
		{schedule.Spec{Expr: "@daily", Period: "daily"}, `period: "daily" is not a choice; write one of day, hour, week, month, tick`},
		{schedule.Spec{Expr: "@daily", DayMatch: "xor"}, `day_match: "xor" is not a choice; write one of or, and`},
		{schedule.Spec{Expr: "@daily", Gap: "before"}, `dst.gap: "before" is not a choice; write one of after, skip`},
		{schedule.Spec{Expr: "@daily", Overlap: "last"}, `dst.overlap: "last" is not a choice; write one of first, second, both`},
		{schedule.Spec{Expr: "@daily", Offset: 367}, `period_offset: "367" is out of range`},
		{schedule.Spec{Expr: "@manual", Offset: -1}, `period_offset: "-1" has no other tick to shift to`},
	} {
		_, err := schedule.Parse(c.spec)
		if err == nil {
			t.Errorf("Parse(%+v) is accepted", c.spec)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("Parse(%+v):\n got %s\nwant %s", c.spec, err, c.want)
		}
		var field *schedule.FieldError
		if !errors.As(err, &field) || field.Field == "" || field.Problem == "" || field.Fix == "" {
			t.Errorf("Parse(%+v) = %#v, want a whole *FieldError", c.spec, err)
		}
		if strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), ". ") {
			t.Errorf("Parse(%+v): %q is not one sentence", c.spec, err)
		}
	}
}

func TestPeriodIsInferredFromTheFieldsAsWritten(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]schedule.Kind{
		"15 2 * * *":           schedule.Day,
		"15 2 * * 2-6":         schedule.Day,
		"15 2 * * MON-FRI":     schedule.Day,
		"15 2 ? * *":           schedule.Day,
		"15 2 * * 1":           schedule.Week,
		"15 2 * * SUN":         schedule.Week,
		"15 2 10 * *":          schedule.Month,
		"15 * * * *":           schedule.Hour,
		"15 * * * 1-5":         schedule.Hour,
		"15 2 * 6 *":           schedule.PerTick,
		"15 2 10 6 *":          schedule.PerTick,
		"15 2 1,15 * *":        schedule.PerTick,
		"0 */6 * * *":          schedule.PerTick,
		"0 */24 * * *":         schedule.PerTick,
		"*/15 * * * *":         schedule.PerTick,
		"* * * * *":            schedule.PerTick,
		"0 2,14 * * *":         schedule.PerTick,
		"@hourly":              schedule.Hour,
		"@daily":               schedule.Day,
		"@midnight":            schedule.Day,
		"@weekly":              schedule.Week,
		"@monthly":             schedule.Month,
		"@yearly":              schedule.PerTick,
		"@every 24h":           schedule.PerTick,
		"@every  1d12h":        schedule.PerTick,
		"@manual":              schedule.PerTick,
		"@at 2026-09-16 02:15": schedule.PerTick,
		" 15  2 \t * * *  ":    schedule.Day,
		"0 0 29 2 *":           schedule.PerTick,
		"@at 2026-09-16T02:15": schedule.PerTick,
		"@every 15m":           schedule.PerTick,
		"0-0 3-3 * * *":        schedule.Day,
		"*/60 * * * *":         schedule.PerTick,
		"@annually":            schedule.PerTick,
		"5 4 * * 0-6":          schedule.Day,
		"5 4 */1 * 2":          schedule.Week,
	} {
		if got := parse(t, schedule.Spec{Expr: expr}).Kind(); got != want {
			t.Errorf("%q is %s, want %s", expr, got, want)
		}
	}
	for expr, want := range map[string]schedule.Kind{
		"30 15 2 * * *":   schedule.Day,
		"0 15 * * * *":    schedule.Hour,
		"*/10 15 2 * * *": schedule.PerTick,
	} {
		if got := parse(t, schedule.Spec{Expr: expr, Seconds: true}).Kind(); got != want {
			t.Errorf("%q with seconds is %s, want %s", expr, got, want)
		}
	}
}

func TestTwoTicksInOnePeriodAreRefused(t *testing.T) {
	t.Parallel()
	const zone = "Europe/Berlin"
	for _, c := range []struct {
		spec schedule.Spec
		want string // "" is accepted
	}{
		{schedule.Spec{Expr: "0 */6 * * *", Period: schedule.Day}, `period: "day" gets 4 ticks a day from "0 */6 * * *", of which 3 would be refused; use period: tick, or run once a day`},
		{schedule.Spec{Expr: "0 2 * * 1-5", Period: schedule.Week}, `gets 5 ticks a week`},
		{schedule.Spec{Expr: "0 2 1,15 * *", Period: schedule.Month}, `gets 2 ticks a month`},
		{schedule.Spec{Expr: "0 2 28,29 2 *", Period: schedule.Month}, `gets 2 ticks a month`},
		{schedule.Spec{Expr: "*/20 * * * *", Period: schedule.Hour}, `gets 3 ticks an hour`},
		{schedule.Spec{Expr: "@every 1s", Period: schedule.Day}, `gets 86400 ticks in 2025-01-01`},
		{schedule.Spec{Expr: "@every 30d", Period: schedule.Month}, `gets 2 ticks in 2`},
		{schedule.Spec{Expr: "@every 24h", Period: schedule.Day}, ""},
		{schedule.Spec{Expr: "@every 24h", EveryOffset: 22*time.Hour + 30*time.Minute, Zone: zone, Period: schedule.Day}, `gets 2 ticks in 2025-10-26 from "@every 24h"`},
		{schedule.Spec{Expr: "30 2 * * *", Zone: zone, Overlap: "both"}, `period: "day" gets 2 ticks in 2025-10-26, when the clocks change,`},
		{schedule.Spec{Expr: "30 4 * * *", Zone: zone, Overlap: "both"}, ""},
		{schedule.Spec{Expr: "30 2 * * *", Overlap: "both"}, ""},
		{schedule.Spec{Expr: "15 1-3 * * *", Zone: zone, Period: schedule.Hour}, `gets 2 ticks in 2025-03-30T03+02:00, when the clocks change,`},
		{schedule.Spec{Expr: "15 1-3 * * *", Zone: zone, Period: schedule.Hour, Gap: "skip"}, ""},
		{schedule.Spec{Expr: "15 0-23 * * *", Zone: "America/New_York", Period: schedule.Hour}, `gets 2 ticks in 2025-03-09T03-04:00, when the clocks change,`},
		{schedule.Spec{Expr: "15 2 10 6 *", Period: schedule.Day}, ""},
		{schedule.Spec{Expr: "0 */6 * * *", Period: schedule.PerTick}, ""},
	} {
		_, err := schedule.Parse(c.spec)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("Parse(%+v) = %v", c.spec, err)
		case c.want != "" && err == nil:
			t.Errorf("Parse(%+v) is accepted", c.spec)
		case c.want != "" && !strings.Contains(err.Error(), c.want):
			t.Errorf("Parse(%+v):\n got %s\nwant %s", c.spec, err, c.want)
		}
	}
}

func TestZoneIsNeverTheHosts(t *testing.T) {
	t.Setenv("TZ", "Asia/Tokyo")
	s := parse(t, schedule.Spec{Expr: "0 2 * * *"})
	if s.Zone() != time.UTC || s.Next(utc(t, "2026-09-16T00:00Z")) != utc(t, "2026-09-16T02:00Z") {
		t.Errorf("without a zone: %s, next %s", s, s.Next(utc(t, "2026-09-16T00:00Z")))
	}
	if got := (schedule.Schedule{}).Zone(); got != time.UTC {
		t.Errorf("the zero Schedule's zone is %s", got)
	}
	if got, want := parse(t, schedule.Spec{Expr: " 15  2 * * * ", Zone: "Asia/Tokyo"}).String(), "15 2 * * * Asia/Tokyo"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, expr := range []string{
		"15 2 * * *", "* * * * *", "*/7 1-3,5 */2 JAN-MAR 1", "0 0 30 2 *", "@every 1h", "@every 9999999h", "@every 106751d",
		"@at 2026-03-29T02:30", "@manual", "@daily", "CRON_TZ=UTC", "TZ=", "?/3 ? ? ? ?", "1/2/3 * * * *", ", , , , ,", "-1 * * * *",
		"18446744073709551615 * * * *", "*/9223372036854775807 * * * *", "30 15 2 * * *",
	} {
		f.Add(expr, "Europe/Berlin", "", 0, false, uint8(0))
		f.Add(expr, "Australia/Lord_Howe", "day", -1, true, uint8(255))
	}
	f.Fuzz(func(t *testing.T, expr, zone, kind string, offset int, seconds bool, choice uint8) {
		s, err := schedule.Parse(schedule.Spec{
			Expr: expr, Zone: zone, Period: schedule.Kind(kind), Offset: offset, Seconds: seconds,
			DayMatch:    []string{"", "or", "and", "and"}[choice&3],
			Gap:         []string{"", "skip"}[choice>>2&1],
			Overlap:     []string{"", "first", "second", "both"}[choice>>3&3],
			EveryOffset: time.Duration(choice>>5) * time.Second,
			Jitter:      time.Duration(offset) * time.Hour,
		})
		if err != nil {
			if err.Error() == "" || strings.Contains(err.Error(), "\n") {
				t.Fatalf("bad error %q", err)
			}
			return
		}
		at := time.Date(2024, 12, 31, 12, 0, 0, 0, time.UTC)
		if gap := s.LongestGap(); gap < 0 {
			t.Fatalf("longest gap %s", gap)
		}
		if j, most := s.JitterOf(expr, zone), time.Duration(offset)*time.Hour; j < 0 || j > 0 && j >= most {
			t.Fatalf("jitter %s of %s", j, most)
		}
		for _, n := range s.Notes(at, at.AddDate(2, 0, 0)) {
			if n.Text == "" || n.To.Before(n.At) {
				t.Fatalf("note %+v", n)
			}
		}
		_ = s.OffsetNote()
		due, err := s.ParseDueBy("23:59+1d")
		if (err == nil) == s.Manual() {
			t.Fatalf("due_by: %v", err)
		}
		for range 5 {
			next := s.Next(at)
			if next.IsZero() {
				break
			}
			if !next.After(at) {
				t.Fatalf("Next(%s) = %s", at, next)
			}
			if d := s.DueAt(due, next); !d.After(next) {
				t.Fatalf("the tick %s is due by %s", next, d)
			}
			if late := s.LateAfter(next); late <= 0 || late > 10*time.Minute {
				t.Fatalf("late after %s", late)
			}
			p := s.Period(next)
			far := p.Start.Year() < 1970 || p.Start.Year() > 9999 // by a long interval and an offset
			if q, err := s.ParseKey(p.Key); !far && (err != nil || q.Key != p.Key) {
				t.Fatalf("ParseKey(%q) = %v, %v", p.Key, q, err)
			}
			at = next
		}
		ticks, watermark := s.Ticks(at.AddDate(-1, 0, 0), at, schedule.Policy{})
		if watermark.After(at) || len(ticks) > 1100 {
			t.Fatalf("%d ticks, watermark %s", len(ticks), watermark)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	from := time.Date(2026, 6, 1, 12, 0, 30, 0, time.UTC)
	for _, expr := range []string{"30 2 * * *", "* * * * *", "15 2 * * 2-6", "0 3 29 2 *", "@every 15m"} {
		b.Run(expr, func(b *testing.B) {
			s := parse(b, schedule.Spec{Expr: expr, Zone: "America/New_York"})
			b.ReportAllocs()
			for b.Loop() {
				s.Next(from)
			}
		})
	}
	b.Run("across a gap", func(b *testing.B) {
		s := parse(b, schedule.Spec{Expr: "30 2 * * *", Zone: "America/New_York"})
		at := time.Date(2026, 3, 8, 6, 0, 0, 0, time.UTC)
		for b.Loop() {
			s.Next(at)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, expr := range []string{"30 2 * * *", "0 2 1 * *", "* * * * *"} {
		b.Run(expr, func(b *testing.B) {
			for b.Loop() {
				parse(b, schedule.Spec{Expr: expr, Zone: "Europe/Berlin"})
			}
		})
	}
}
