package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

func TestWeekdaysThatAreNeverOwedAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec  schedule.Spec
		never string
		note  string
	}{
		{schedule.Spec{Expr: "15 2 * * 1-5", Offset: -1}, "[Friday Saturday]", "with period_offset -1 the keys are Sun to Thu; Friday and Saturday are never owed"},
		{schedule.Spec{Expr: "15 2 * * 2-6", Offset: -1}, "[Saturday Sunday]", "with period_offset -1 the keys are Mon to Fri; Saturday and Sunday are never owed"},
		{schedule.Spec{Expr: "15 2 * * 1-5", Offset: 1}, "[Monday Sunday]", "with period_offset 1 the keys are Tue to Sat; Monday and Sunday are never owed"},
		{schedule.Spec{Expr: "15 2 * * 1-3", Offset: -1}, "[Wednesday Thursday Friday Saturday]", "with period_offset -1 the keys are Sun to Tue; Wednesday, Thursday, Friday and Saturday are never owed"},
		{schedule.Spec{Expr: "15 2 * * 1-6", Offset: -7}, "[Sunday]", "with period_offset -7 the keys are Mon to Sat; Sunday is never owed"},
		{schedule.Spec{Expr: "15 2 * * 1,3,5", Offset: -1}, "[Monday Wednesday Friday Saturday]", "with period_offset -1 the keys are Tue, Thu and Sun; Monday, Wednesday, Friday and Saturday are never owed"},
		{schedule.Spec{Expr: "15 2 * * 1,2", Offset: -366}, "[Monday Tuesday Wednesday Thursday Friday]", "with period_offset -366 the keys are Sat and Sun; Monday, Tuesday, Wednesday, Thursday and Friday are never owed"},
		{schedule.Spec{Expr: "15 2 * * 1", Period: schedule.Day, Offset: -1}, "[Monday Tuesday Wednesday Thursday Friday Saturday]", "with period_offset -1 the keys are Sun; Monday, Tuesday, Wednesday, Thursday, Friday and Saturday are never owed"},
		{schedule.Spec{Expr: "15 2 * * 1-5"}, "[Saturday Sunday]", ""},
		{schedule.Spec{Expr: "15 2 * * *", Offset: -1}, "[]", ""},
		{schedule.Spec{Expr: "15 2 * * 0-6", Offset: -1}, "[]", ""},
		{schedule.Spec{Expr: "15 2 * 6 1-5", Period: schedule.Day, Offset: -1}, "[]", ""},
		{schedule.Spec{Expr: "15 2 1 * *", Offset: -1}, "[]", ""},
		{schedule.Spec{Expr: "15 * * * 1-5", Offset: -1}, "[]", ""},
		{schedule.Spec{Expr: "0 2 13 * 5", Period: schedule.Day, DayMatch: "or", Offset: -1}, "[]", ""},
		{schedule.Spec{Expr: "@every 24h", Period: schedule.Day, Offset: -1}, "[]", ""},
		{schedule.Spec{Expr: "@manual", Period: schedule.Day, Offset: -1}, "[]", ""},
	} {
		s := parse(t, c.spec)
		if got := fmt.Sprint(s.NeverOwed()); got != c.never {
			t.Errorf("%+v: never %s, want %s", c.spec, got, c.never)
		}
		if got := s.OffsetNote(); got != c.note {
			t.Errorf("%+v:\n got %q\nwant %q", c.spec, got, c.note)
		}
	}
}

// TestNeverOwedAgreesWithDue asks for each date of three weeks whether it is ever due.
func TestNeverOwedAgreesWithDue(t *testing.T) {
	t.Parallel()
	for _, days := range []string{"*", "1-5", "2-6", "0", "0,6", "1,3,5", "0-5"} {
		for offset := -9; offset <= 9; offset++ {
			s := parse(t, schedule.Spec{Expr: "15 2 * * " + days, Zone: "Europe/Berlin", Period: schedule.Day, Offset: offset})
			never := map[time.Weekday]bool{}
			for _, d := range s.NeverOwed() {
				never[d] = true
			}
			for d := range 21 {
				date := utc(t, "2026-10-10T00:00Z").AddDate(0, 0, d)
				p, err := s.ParseKey(date.Format("2006-01-02"))
				if err != nil {
					t.Fatal(err)
				}
				if _, due := s.Due(p); due == never[date.Weekday()] {
					t.Errorf("%s, offset %d: %s is due %t, never owed %t", s, offset, p.Key, due, never[date.Weekday()])
				}
			}
		}
	}
}

func TestLongestGapIsByTheWallClock(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		spec schedule.Spec
		want time.Duration
	}{
		{schedule.Spec{Expr: "15 2 * * *"}, day},
		{schedule.Spec{Expr: "15 2 * * *", Zone: "Europe/Berlin"}, day},
		{schedule.Spec{Expr: "15 2 * * 1-5"}, 3 * day},
		{schedule.Spec{Expr: "15 2 * * 1"}, 7 * day},
		{schedule.Spec{Expr: "15 2 10 * *"}, 31 * day},
		{schedule.Spec{Expr: "15 2 31 * *"}, 61 * day},
		{schedule.Spec{Expr: "@yearly"}, 366 * day},
		{schedule.Spec{Expr: "0 3 29 2 *"}, 1461 * day},
		{schedule.Spec{Expr: "0 3 29 2 1", DayMatch: "and"}, 28*365*day + 7*day},
		{schedule.Spec{Expr: "0 3 29 2 1", DayMatch: "and", Period: schedule.Day}, 28*365*day + 7*day},
		{schedule.Spec{Expr: "* * * * *"}, time.Minute},
		{schedule.Spec{Expr: "*/7 * * * *"}, 7 * time.Minute},
		{schedule.Spec{Expr: "* * * * * *", Seconds: true}, time.Second},
		{schedule.Spec{Expr: "10 0,20 8-17 * * *", Seconds: true}, 14*time.Hour + 40*time.Minute},
		{schedule.Spec{Expr: "0,5 2 * * 1,2"}, 6*day - 5*time.Minute},
		{schedule.Spec{Expr: "0 1,20 * * *"}, 19 * time.Hour},
		{schedule.Spec{Expr: "@hourly"}, time.Hour},
		{schedule.Spec{Expr: "@every 10d"}, 10 * day},
		{schedule.Spec{Expr: "@every 10d", Period: schedule.Day}, 10 * day},
		{schedule.Spec{Expr: "@at 2026-09-16T02:15"}, 0},
		{schedule.Spec{Expr: "@manual"}, 0},
	} {
		s := parse(t, c.spec)
		if got := s.LongestGap(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.spec, got, c.want)
		}
	}
}
