package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pawl/examples/settlement"
)

func TestLengthsOfTimeAreForPeople(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0ms", -time.Microsecond: "0ms", -5 * time.Second: "-5.0s", 999 * time.Millisecond: "999ms", 1500 * time.Millisecond: "1.5s",
		59 * time.Second: "59s", 65 * time.Second: "1m 05s", 2*time.Hour + 3*time.Minute: "2h 03m", 75 * time.Hour: "3d 3h",
	} {
		if got := humanise(d); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -100: "-100"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestPasswordsAreMasked(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"cannot parse `postgres://clerk:hunter2@host/db`", "postgres://:hunter2@host", "postgres://clerk:hun@hunter2@host/db",
		"host=x password=hunter2 user=y", "host=x password = 'hunter2 and more' user=y", "postgres://h/db?password=hunter2&x=y",
		"PASSWORD=hunter2", "sslpassword=hunter2",
	} {
		got := sentence(errors.New("jobs: " + s + "\nand more"))
		if strings.Contains(got, "hunter2") || !strings.Contains(got, "xxxxx") || strings.Contains(got, "\n") || strings.HasPrefix(got, "jobs: ") {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestVerdictNamesWhatDidNotHold(t *testing.T) {
	t.Parallel()
	good := verdict{Periods: 5, Complete: 5, Runs: 7, Takeovers: 2, Refusals: 2, Resumed: true, Payments: 1, Settled: 1}
	if broken := good.broken(); len(broken) != 0 {
		t.Errorf("%v", broken)
	}
	for want, spoil := range map[string]func(*verdict){
		"4 of 5 days are complete":         func(v *verdict) { v.Complete = 4 },
		"6 days are owed instead of 5":     func(v *verdict) { v.Periods, v.Complete = 6, 6 },
		"1 takeover instead of two":        func(v *verdict) { v.Takeovers = 1 },
		"no late write was refused":        func(v *verdict) { v.Refusals = 0 },
		"no run went on from a checkpoint": func(v *verdict) { v.Resumed = false },
		"the totals differ by 3":           func(v *verdict) { v.Difference = 3 },
		"1 payment is settled twice":       func(v *verdict) { v.Duplicates = 1 },
		"2 payments are missing":           func(v *verdict) { v.totals = settlement.Totals{Total: settlement.Total{Missing: 2}} },
		"there are no payments":            func(v *verdict) { v.Payments = 0 },
	} {
		v := good
		spoil(&v)
		if got := fmt.Sprint(v.broken()); got != "["+want+"]" {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestPlanOwesFiveDaysWithoutATickNearby(t *testing.T) {
	t.Parallel()
	for _, now := range []string{"2026-11-29T19:24:00Z", "2026-11-29T00:10:00Z", "2026-03-01T00:29:59Z", "2026-03-01T00:30:00Z", "2026-12-31T23:59:59Z"} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		p := newPlan(at)
		last := p.start.AddDate(0, 0, owedDays-1).Add(time.Second)
		if gap := at.Sub(last); gap < 30*time.Minute || gap >= 90*time.Minute {
			t.Errorf("%s: the last tick was %s ago", now, gap)
		}
		if p.schedule != fmt.Sprintf("0 %d * * *", last.Hour()) {
			t.Errorf("%s: schedule %q, last tick %s", now, p.schedule, last)
		}
		if len(p.days) != owedDays || p.days[owedDays-1] != p.lastDay.Format(time.DateOnly) || p.days[owedDays-1] != last.AddDate(0, 0, -1).Format(time.DateOnly) {
			t.Errorf("%s: days %v, last day %s, last tick %s", now, p.days, p.lastDay, last)
		}
	}
}

func TestNextShowsSecondsWhereTheScheduleHasThem(t *testing.T) {
	t.Parallel()
	next := time.Date(2026, 9, 16, 4, 15, 0, 0, time.UTC)
	for schedule, want := range map[string]string{
		"@every 30s": "2026-09-16 04:15:00Z", "@every 90s": "2026-09-16 04:15:00Z", "*/10 * * * * *": "2026-09-16 04:15:00Z",
		"@every 5m": "2026-09-16 04:15Z", "15 4 * * *": "2026-09-16 04:15Z", "@daily": "2026-09-16 04:15Z",
	} {
		var j listedJob
		j.Schedule, j.NextAt = schedule, &next
		if got := jobCells(j)[3]; got != want {
			t.Errorf("%s: %q, want %q", schedule, got, want)
		}
	}
}
