package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

func TestTickOwesItsPeriod(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		spec            schedule.Spec
		tick            string
		key, start, end string
	}{
		{"a day", schedule.Spec{Expr: "15 2 * * *"}, "2026-09-16T02:15Z", "2026-09-16", "2026-09-16T00:00Z", "2026-09-17T00:00Z"},
		{"the day before", schedule.Spec{Expr: "15 2 * * *", Offset: -1}, "2026-09-10T02:15Z", "2026-09-09", "2026-09-09T00:00Z", "2026-09-10T00:00Z"},
		{"the local date, not the UTC one", schedule.Spec{Expr: "15 2 * * *", Zone: "Asia/Tokyo"}, "2026-09-15T17:15Z", "2026-09-16", "2026-09-15T15:00Z", "2026-09-16T15:00Z"},
		{"a day of 23 hours", schedule.Spec{Expr: "30 2 * * *", Zone: "Europe/Berlin"}, "2025-03-30T01:00Z", "2025-03-30", "2025-03-29T23:00Z", "2025-03-30T22:00Z"},
		{"a day of 25 hours", schedule.Spec{Expr: "30 2 * * *", Zone: "Europe/Berlin"}, "2025-10-26T00:30Z", "2025-10-26", "2025-10-25T22:00Z", "2025-10-26T23:00Z"},
		{"a day without its midnight", schedule.Spec{Expr: "0 0 * * *", Zone: "Africa/Cairo"}, "2025-04-24T22:00Z", "2025-04-25", "2025-04-24T22:00Z", "2025-04-25T21:00Z"},
		{"a day with two midnights", schedule.Spec{Expr: "0 0 * * *", Zone: "America/Havana"}, "2026-11-01T04:00Z", "2026-11-01", "2026-11-01T04:00Z", "2026-11-02T05:00Z"},
		{"a week", schedule.Spec{Expr: "0 3 * * 3"}, "2026-09-16T03:00Z", "2026-W38", "2026-09-14T00:00Z", "2026-09-21T00:00Z"},
		{"the ISO year differs", schedule.Spec{Expr: "0 3 * * 5"}, "2027-01-01T03:00Z", "2026-W53", "2026-12-28T00:00Z", "2027-01-04T00:00Z"},
		{"the week before the first", schedule.Spec{Expr: "0 3 * * 1", Offset: -1}, "2026-01-05T03:00Z", "2026-W01", "2025-12-29T00:00Z", "2026-01-05T00:00Z"},
		{"a month", schedule.Spec{Expr: "0 3 10 * *"}, "2026-09-10T03:00Z", "2026-09", "2026-09-01T00:00Z", "2026-10-01T00:00Z"},
		{"the month before, over the year", schedule.Spec{Expr: "0 3 31 * *", Offset: -1}, "2026-01-31T03:00Z", "2025-12", "2025-12-01T00:00Z", "2026-01-01T00:00Z"},
		{"February before 31 March", schedule.Spec{Expr: "0 3 31 * *", Offset: -1}, "2026-03-31T03:00Z", "2026-02", "2026-02-01T00:00Z", "2026-03-01T00:00Z"},
		{"an hour in UTC", schedule.Spec{Expr: "5 * * * *"}, "2026-09-16T14:05Z", "2026-09-16T14+00:00", "2026-09-16T14:00Z", "2026-09-16T15:00Z"},
		{"an hour with its offset", schedule.Spec{Expr: "5 * * * *", Zone: "Europe/Berlin"}, "2026-09-16T12:05Z", "2026-09-16T14+02:00", "2026-09-16T12:00Z", "2026-09-16T13:00Z"},
		{"the repeated hour's first pass", schedule.Spec{Expr: "5 * * * *", Zone: "Europe/Berlin"}, "2025-10-26T00:05Z", "2025-10-26T02+02:00", "2025-10-26T00:00Z", "2025-10-26T01:00Z"},
		{"the repeated hour's second pass", schedule.Spec{Expr: "5 * * * *", Zone: "Europe/Berlin"}, "2025-10-26T01:05Z", "2025-10-26T02+01:00", "2025-10-26T01:00Z", "2025-10-26T02:00Z"},
		{"the hour before the second pass", schedule.Spec{Expr: "5 * * * *", Zone: "Europe/Berlin", Offset: -1}, "2025-10-26T01:05Z", "2025-10-26T02+02:00", "2025-10-26T00:00Z", "2025-10-26T01:00Z"},
		{"an hour at half past in UTC", schedule.Spec{Expr: "5 * * * *", Zone: "Asia/Kolkata"}, "2026-09-16T08:35Z", "2026-09-16T14+05:30", "2026-09-16T08:30Z", "2026-09-16T09:30Z"},
		{"an hour cut by a gap of 30 minutes", schedule.Spec{Expr: "45 * * * *", Zone: "Australia/Lord_Howe"}, "2025-10-04T15:45Z", "2025-10-05T02+11:00", "2025-10-04T15:30Z", "2025-10-04T16:00Z"},
		{"half an hour repeated", schedule.Spec{Expr: "45 * * * *", Zone: "Australia/Lord_Howe"}, "2026-04-04T15:15Z", "2026-04-05T01+10:30", "2026-04-04T15:00Z", "2026-04-04T15:30Z"},
		{"a tick", schedule.Spec{Expr: "*/15 * * * *"}, "2026-09-16T14:15Z", "2026-09-16T14:15:00Z", "2026-09-16T14:15Z", "2026-09-16T14:30Z"},
		{"the tick before", schedule.Spec{Expr: "0 9-17 * * 1-5", Offset: -1}, "2026-09-14T09:00Z", "2026-09-11T17:00:00Z", "2026-09-11T17:00Z", "2026-09-14T09:00Z"},
		{"the interval before", schedule.Spec{Expr: "@every 15m", Offset: -1}, "2026-09-16T14:15Z", "2026-09-16T14:00:00Z", "2026-09-16T14:00Z", "2026-09-16T14:15Z"},
		{"two ticks on", schedule.Spec{Expr: "@every 15m", Offset: 2}, "2026-09-16T14:15Z", "2026-09-16T14:45:00Z", "2026-09-16T14:45Z", "2026-09-16T15:00Z"},
		{"at once and never again", schedule.Spec{Expr: "@at 2026-09-16T14:15"}, "2026-09-16T14:15Z", "2026-09-16T14:15:00Z", "2026-09-16T14:15Z", "2026-09-16T14:15Z"},
		{"a manual job's day", schedule.Spec{Expr: "@manual", Period: schedule.Day, Offset: -1}, "2026-09-16T14:15Z", "2026-09-15", "2026-09-15T00:00Z", "2026-09-16T00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := parse(t, c.spec)
			want := schedule.Period{Key: c.key, Start: utc(t, c.start), End: utc(t, c.end), Offset: c.spec.Offset}
			if got := s.Period(utc(t, c.tick)); got != want {
				t.Errorf("Period = %+v, want %+v", got, want)
			}
			if got, err := s.ParseKey(c.key); err != nil || got != want {
				t.Errorf("ParseKey = %+v, %v, want %+v", got, err, want)
			}
			if due, ok := s.Due(want); ok != !s.Manual() || ok && !due.Equal(utc(t, c.tick)) {
				t.Errorf("Due = %s, %t, want %s", due, ok, c.tick)
			}
		})
	}
}

// TestPeriodsTileTime follows a year of each kind: each period begins where the one
// before ended, holds its instants, and has a key of its own.
func TestPeriodsTileTime(t *testing.T) {
	t.Parallel()
	for zone, from := range map[string]int{
		"UTC": 2025, "Europe/Berlin": 2025, "Australia/Lord_Howe": 2025, "America/Havana": 2025, "Africa/Cairo": 2025,
		"Antarctica/Troll": 2025, "Europe/London": 2044, "America/St_Johns": 2010, "Asia/Pyongyang": 2018,
	} {
		for _, kind := range []schedule.Kind{schedule.Hour, schedule.Day, schedule.Week, schedule.Month} {
			s := parse(t, schedule.Spec{Expr: "@manual", Zone: zone, Period: kind})
			seen := map[string]bool{}
			p := s.Period(time.Date(from-1, 12, 20, 10, 0, 0, 0, time.UTC))
			for p.Start.Year() <= from {
				if seen[p.Key] {
					t.Errorf("%s: %s comes twice", zone, p.Key)
				}
				seen[p.Key] = true
				if last := s.Period(p.End.Add(-time.Second)); last != p {
					t.Errorf("%s: the last second of %s lies in %s", zone, p.Key, last.Key)
				}
				if key, err := s.ParseKey(p.Key); err != nil || key != p {
					t.Errorf("%s: ParseKey(%q) = %+v, %v, want %+v", zone, p.Key, key, err, p)
				}
				next := s.Period(p.End)
				if !next.Start.Equal(p.End) || !next.End.After(next.Start) {
					t.Fatalf("%s: %+v is followed by %+v", zone, p, next)
				}
				p = next
			}
		}
	}
}

func TestBadKeysAreRefusedWithTheirForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec      schedule.Spec
		key, want string
	}{
		{schedule.Spec{Expr: "@daily"}, "2026-02-30", `key: "2026-02-30" is not a day; write it like 2026-09-16`},
		{schedule.Spec{Expr: "@daily"}, "2026-9-16", "is not a day"},
		{schedule.Spec{Expr: "@daily"}, "", "is not a day"},
		{schedule.Spec{Expr: "@daily"}, "1969-12-31", "is not a day"},
		{schedule.Spec{Expr: "@daily"}, "2026-09-16T02:15:00Z", "is not a day"},
		{schedule.Spec{Expr: "@weekly"}, "2026-W54", `is not an ISO week; write it like 2026-W38`},
		{schedule.Spec{Expr: "@weekly"}, "2025-W53", "is not an ISO week"},
		{schedule.Spec{Expr: "@weekly"}, "2026-W00", "is not an ISO week"},
		{schedule.Spec{Expr: "@weekly"}, "2026-W1", "is not an ISO week"},
		{schedule.Spec{Expr: "@weekly"}, "2026-W+1", "is not an ISO week"},
		{schedule.Spec{Expr: "@monthly"}, "2026-13", `is not a month; write it like 2026-09`},
		{schedule.Spec{Expr: "@hourly", Zone: "Europe/Berlin"}, "2026-09-16T14", `is not an hour with its offset; write it like 2026-09-16T14+02:00`},
		{schedule.Spec{Expr: "@hourly", Zone: "Europe/Berlin"}, "2026-09-16T14+01:00", `is not an hour in Europe/Berlin; write it like 2026-09-16T15+02:00`},
		{schedule.Spec{Expr: "@hourly", Zone: "Europe/Berlin"}, "2025-03-30T02+02:00", `is not an hour in Europe/Berlin`},
		{schedule.Spec{Expr: "@every 15m"}, "2026-09-16T14:15:00+02:00", `is not a UTC instant; write it like 2026-09-16T14:05:00Z`},
		{schedule.Spec{Expr: "@every 15m"}, "2026-09-16T14:15:00.5Z", `is not a UTC instant`},
		{schedule.Spec{Expr: "@every 15m"}, "01ARZ3NDEKTSV4RRFFQ69G5FAV", `is not a UTC instant`},
		{schedule.Spec{Expr: "@manual"}, "01ARZ3NDEKTSV4RRFFQ69G5FAU?", `is not the key of something triggered`},
		{schedule.Spec{Expr: "@manual"}, "81ARZ3NDEKTSV4RRFFQ69G5FAV", `is not the key of something triggered`},
	} {
		_, err := parse(t, c.spec).ParseKey(c.key)
		var field *schedule.FieldError
		if !errors.As(err, &field) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: ParseKey(%q) = %v, want %s", c.spec.Expr, c.key, err, c.want)
		}
	}
}

func TestManualJobsTakeULIDKeys(t *testing.T) {
	t.Parallel()
	p, err := parse(t, schedule.Spec{Expr: "@manual"}).ParseKey("01ARZ3NDEKTSV4RRFFQ69G5FAV")
	if want := time.UnixMilli(1469922850259).UTC().Truncate(time.Second); err != nil || !p.Start.Equal(want) {
		t.Errorf("ParseKey = %+v, %v, want the start %s", p, err, want)
	}
}

func TestDueSaysWhatIsNeverOwed(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Spec{Expr: "15 2 * * 2-6", Zone: "Europe/Berlin", Offset: -1})
	for key, want := range map[string]string{
		"2026-09-14": "2026-09-15T00:15Z", "2026-09-18": "2026-09-19T00:15Z", // Monday to Friday
		"2026-09-19": "", "2026-09-20": "",
	} {
		p, err := s.ParseKey(key)
		if err != nil {
			t.Fatal(err)
		}
		due, ok := s.Due(p)
		if ok != (want != "") || ok && !due.Equal(utc(t, want)) {
			t.Errorf("Due(%s) = %s, %t, want %q", key, due, ok, want)
		}
	}
}
