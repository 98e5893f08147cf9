package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

// show prints ticks as "02T10:00 ok", "02T10:00..02T11:00 x3 catch_up".
func show(ticks []schedule.Tick) string {
	var lines []string
	for _, k := range ticks {
		line := k.At.Format("02T15:04")
		if k.Count > 1 {
			line += fmt.Sprintf("..%s x%d", k.To.Format("02T15:04"), k.Count)
		}
		if k.Reason == "" {
			k.Reason = "ok"
		}
		lines = append(lines, line+" "+k.Reason)
	}
	return strings.Join(lines, ", ")
}

func TestCatchUpDecidesWhatIsOwed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, expr, after, now string
		policy                 schedule.Policy
		want, watermark        string // watermark "" is now
	}{
		{"nothing due", "15 2 * * *", "2026-09-16T02:15Z", "2026-09-17T02:14Z", schedule.Policy{}, "", ""},
		{"due now", "15 2 * * *", "2026-09-16T02:15Z", "2026-09-17T02:15Z", schedule.Policy{}, "17T02:15 ok", ""},
		{"the watermark's own tick is not listed again", "15 2 * * *", "2026-09-17T02:15Z", "2026-09-17T02:16Z", schedule.Policy{}, "", ""},
		{"planner away over its instant", "0 10 * * *", "2026-09-16T09:59Z", "2026-09-16T10:30Z", schedule.Policy{}, "16T10:00 ok", ""},
		{"all days of a weekend", "15 2 * * *", "2026-09-18T12:00Z", "2026-09-21T08:00Z", schedule.Policy{}, "19T02:15 ok, 20T02:15 ok, 21T02:15 ok", ""},
		{"days beyond the window", "15 2 * * *", "2026-09-01T12:00Z", "2026-09-11T12:00Z", schedule.Policy{}, "02T02:15 window, 03T02:15 window, 04T02:15 window, 05T02:15 ok, 06T02:15 ok, 07T02:15 ok, 08T02:15 ok, 09T02:15 ok, 10T02:15 ok, 11T02:15 ok", ""},
		{"exactly as old as the window", "15 2 * * *", "2026-09-01T12:00Z", "2026-09-03T02:15Z", schedule.Policy{Window: 24 * time.Hour}, "02T02:15 ok, 03T02:15 ok", ""},
		{"latest of the days", "15 2 * * *", "2026-09-18T12:00Z", "2026-09-21T08:00Z", schedule.Policy{CatchUp: schedule.CatchUpLatest}, "19T02:15 catch_up, 20T02:15 catch_up, 21T02:15 ok", ""},
		{"no day is caught up", "15 2 * * *", "2026-09-18T12:00Z", "2026-09-21T08:00Z", schedule.Policy{CatchUp: schedule.CatchUpNone}, "19T02:15 catch_up, 20T02:15 catch_up, 21T02:15 catch_up", ""},
		{"none runs what is due now", "15 2 * * *", "2026-09-18T12:00Z", "2026-09-21T02:20Z", schedule.Policy{CatchUp: schedule.CatchUpNone}, "19T02:15 catch_up, 20T02:15 catch_up, 21T02:15 ok", ""},
		{"a day of five minutes, latest", "*/5 * * * *", "2026-09-16T00:00Z", "2026-09-17T00:00Z", schedule.Policy{}, "16T00:05..16T23:55 x287 catch_up, 17T00:00 ok", ""},
		{"hours, none", "0 * * * *", "2026-09-16T00:00Z", "2026-09-16T05:30Z", schedule.Policy{CatchUp: schedule.CatchUpNone}, "16T01:00..16T05:00 x5 catch_up", ""},
		{"hours, all within the window", "0 * * * *", "2026-09-16T00:00Z", "2026-09-16T05:30Z", schedule.Policy{CatchUp: schedule.CatchUpAll, Window: 2 * time.Hour}, "16T01:00..16T03:00 x3 window, 16T04:00 ok, 16T05:00 ok", ""},
		{"at most max owed", "15 2 * * *", "2026-09-18T12:00Z", "2026-09-21T08:00Z", schedule.Policy{Max: 2}, "19T02:15 ok, 20T02:15 ok", "2026-09-20T02:15Z"},
		{"exactly max owed", "15 2 * * *", "2026-09-18T12:00Z", "2026-09-21T08:00Z", schedule.Policy{Max: 3}, "19T02:15 ok, 20T02:15 ok, 21T02:15 ok", ""},
		{"latest, older than the window", "@yearly", "2025-09-18T12:00Z", "2026-09-21T08:00Z", schedule.Policy{}, "01T00:00 window", ""},
		{"start_within, planned in time", "15 2 * * *", "2026-09-18T12:00Z", "2026-09-19T02:20Z", schedule.Policy{StartWithin: 5 * time.Minute}, "19T02:15 ok", ""},
		{"start_within, too late", "15 2 * * *", "2026-09-18T12:00Z", "2026-09-19T02:21Z", schedule.Policy{StartWithin: 5 * time.Minute}, "19T02:15 too_late", ""},
		{"none and start_within, late", "15 2 * * *", "2026-09-18T12:00Z", "2026-09-21T02:18Z", schedule.Policy{CatchUp: schedule.CatchUpNone, StartWithin: 2 * time.Minute}, "19T02:15 catch_up, 20T02:15 catch_up, 21T02:15 too_late", ""},
		{"window, then start_within, then owed", "15 2 * * *", "2026-09-16T12:00Z", "2026-09-21T02:20Z", schedule.Policy{Window: 60 * time.Hour, StartWithin: 30 * time.Hour}, "17T02:15 window, 18T02:15 window, 19T02:15 too_late, 20T02:15 ok, 21T02:15 ok", ""},
		{"start_within longer than the window", "15 2 * * *", "2026-09-18T12:00Z", "2026-09-21T02:20Z", schedule.Policy{Window: 30 * time.Hour, StartWithin: 60 * time.Hour}, "19T02:15 window, 20T02:15 ok, 21T02:15 ok", ""},
		{"hours that are too late are one stretch", "0 * * * *", "2026-09-16T00:00Z", "2026-09-16T05:30Z", schedule.Policy{CatchUp: schedule.CatchUpAll, StartWithin: time.Hour}, "16T01:00..16T04:00 x4 too_late, 16T05:00 ok", ""},
		{"latest hour, too late", "0 * * * *", "2026-09-16T00:00Z", "2026-09-16T05:30Z", schedule.Policy{StartWithin: time.Minute}, "16T01:00..16T04:00 x4 catch_up, 16T05:00 too_late", ""},
		{"an edited schedule has no past", "0 10 * * *", "2026-09-16T15:00Z", "2026-09-17T09:59Z", schedule.Policy{}, "", ""},
		{"the clock went back", "* * * * *", "2026-09-16T15:00Z", "2026-09-16T14:00Z", schedule.Policy{}, "", "2026-09-16T15:00Z"},
		{"manual", "@manual", "2026-09-16T15:00Z", "2026-09-17T14:00Z", schedule.Policy{}, "", ""},
		{"at, late", "@at 2026-09-16T15:00", "2026-09-16T14:00Z", "2026-09-16T16:00Z", schedule.Policy{}, "16T15:00 ok", ""},
		{"every", "@every 8h", "2026-09-16T00:00Z", "2026-09-17T01:00Z", schedule.Policy{CatchUp: schedule.CatchUpAll}, "16T08:00 ok, 16T16:00 ok, 17T00:00 ok", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := parse(t, schedule.Spec{Expr: c.expr})
			ticks, watermark := s.Ticks(utc(t, c.after), utc(t, c.now), c.policy)
			if got := show(ticks); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			if c.watermark == "" {
				c.watermark = c.now
			}
			if !watermark.Equal(utc(t, c.watermark)) {
				t.Errorf("watermark %s, want %s", watermark, c.watermark)
			}
			for _, k := range ticks {
				if k.Period != s.Period(k.At) {
					t.Errorf("%s owes %+v", k.At, k.Period)
				}
			}
		})
	}
}

func TestWindowIsExactToTheFraction(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Spec{Expr: "15 2 * * *"})
	now := utc(t, "2026-09-03T02:15Z").Add(time.Millisecond)
	ticks, watermark := s.Ticks(now.Add(-25*time.Hour), now, schedule.Policy{Window: 24 * time.Hour})
	if got, want := show(ticks), "02T02:15 window, 03T02:15 ok"; got != want || watermark != now {
		t.Errorf("%s, watermark %s, want %s", got, watermark, want)
	}
}

func TestYearsOfSecondsAreFolded(t *testing.T) {
	t.Parallel()
	now := utc(t, "2026-09-16T12:00Z")
	after := now.AddDate(-20, 0, 0)
	for _, spec := range []schedule.Spec{
		{Expr: "* * * * * *", Seconds: true, Zone: "Europe/Berlin"}, {Expr: "@every 1s"},
	} {
		s := parse(t, spec)
		start := time.Now()
		ticks, watermark := s.Ticks(after, now, schedule.Policy{})
		if len(ticks) != 2 || ticks[0].Count != int(now.Sub(after)/time.Second)-1 || ticks[1].Reason != "" || !watermark.Equal(now) {
			t.Errorf("%s: %d ticks, %s, watermark %s", s, len(ticks), show(ticks), watermark)
		}
		if spent := time.Since(start); spent > 5*time.Second {
			t.Errorf("%s: 20 years took %s", s, spent)
		}
		ticks, watermark = s.Ticks(after, now, schedule.Policy{CatchUp: schedule.CatchUpAll})
		if len(ticks) != 51 || ticks[0].Reason != schedule.ReasonWindow || !watermark.Equal(ticks[50].At) {
			t.Errorf("%s, all: %d ticks, watermark %s", s, len(ticks), watermark)
		}
	}
}

func TestYearsOfDaysComeInPasses(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Spec{Expr: "@daily"})
	now := utc(t, "2026-09-16T12:00Z")
	after := now.AddDate(-10, 0, 0)
	total, owed := 0, 0
	for pass := 0; after.Before(now); pass++ {
		ticks, watermark := s.Ticks(after, now, schedule.Policy{})
		if len(ticks) > 1100 || pass > 10 || !watermark.After(after) {
			t.Fatalf("pass %d has %d ticks and goes from %s to %s", pass, len(ticks), after, watermark)
		}
		for _, k := range ticks {
			total += k.Count
			if k.Reason == "" {
				owed++
			}
		}
		after = watermark
	}
	if total != 3652 || owed != 7 {
		t.Errorf("%d ticks, %d owed, want 3652 and 7", total, owed)
	}
}

// TestNoTickIsLostBetweenPasses splits a stretch at random instants: the ticks are
// those of a walk with Next, whatever the passes and the policy.
func TestNoTickIsLostBetweenPasses(t *testing.T) {
	t.Parallel()
	seed := uint64(7)
	rnd := rand.New(rand.NewPCG(seed, 2))
	specs := []schedule.Spec{
		{Expr: "*/7 1-4 * * *"},
		{Expr: "*/20 * * * *"},
		{Expr: "0,30 1-3 * * *"},
		{Expr: "15 2 * * *"},
		{Expr: "@every 37m"},
		{Expr: "0,30 1-3 * * *", Overlap: "second", Gap: "skip"},
		{Expr: "0,30 1-3 * * *", Overlap: "both"},
	}
	policies := []schedule.CatchUp{schedule.CatchUpNone, schedule.CatchUpLatest, schedule.CatchUpAll}
	for i := range 400 {
		spec := specs[rnd.IntN(len(specs))]
		spec.Zone = []string{"UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns"}[rnd.IntN(4)]
		s := parse(t, spec)
		from := time.Date(2025, time.Month(1+rnd.IntN(12)), 1+rnd.IntN(31), rnd.IntN(24), 0, 0, 0, time.UTC)
		to := from.Add(time.Duration(rnd.IntN(30*24)) * time.Hour)
		want := 0
		for u := s.Next(from); !u.After(to); u = s.Next(u) {
			want++
		}
		p := schedule.Policy{CatchUp: policies[rnd.IntN(3)], Max: 1 + rnd.IntN(9), Window: time.Duration(1+rnd.IntN(100)) * time.Hour, StartWithin: time.Duration(rnd.IntN(3)*rnd.IntN(60)) * time.Hour}
		got, last := 0, from
		for at := from; at.Before(to); {
			now := at.Add(time.Duration(1 + rnd.Int64N(int64(100*time.Hour))))
			if now.After(to) {
				now = to
			}
			ticks, watermark := s.Ticks(at, now, p)
			for _, k := range ticks {
				if !k.At.After(last) || k.To.Before(k.At) || k.To.After(watermark) {
					t.Fatalf("seed %d, round %d: %s: %+v after %s", seed, i, s, k, last)
				}
				got, last = got+k.Count, k.To
			}
			at = watermark
		}
		if got != want {
			t.Fatalf("seed %d, round %d: %s %+v from %s to %s: %d ticks, want %d", seed, i, s, p, from, to, got, want)
		}
	}
}

func TestPolicyFillsInDefaults(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		spec schedule.Spec
		want schedule.Policy
	}{
		{schedule.Spec{Expr: "15 2 * * *"}, schedule.Policy{CatchUp: "all", Window: 7 * day, Max: 50}},
		{schedule.Spec{Expr: "15 2 * * 1-5"}, schedule.Policy{CatchUp: "all", Window: 7 * day, Max: 50}},
		{schedule.Spec{Expr: "15 2 * * 1", Zone: "Europe/Berlin"}, schedule.Policy{CatchUp: "all", Window: 14 * day, Max: 50}},
		{schedule.Spec{Expr: "15 2 10 * *"}, schedule.Policy{CatchUp: "all", Window: 38 * day, Max: 50}},
		{schedule.Spec{Expr: "15 2 31 * *"}, schedule.Policy{CatchUp: "all", Window: 68 * day, Max: 50}},
		{schedule.Spec{Expr: "@yearly", Period: schedule.Month}, schedule.Policy{CatchUp: "all", Window: 373 * day, Max: 50}},
		{schedule.Spec{Expr: "@every 10d", Period: schedule.Day}, schedule.Policy{CatchUp: "all", Window: 17 * day, Max: 50}},
		{schedule.Spec{Expr: "@hourly"}, schedule.Policy{CatchUp: "latest", Window: day, Max: 50}},
		{schedule.Spec{Expr: "@every 15m"}, schedule.Policy{CatchUp: "latest", Window: day, Max: 50}},
	} {
		s := parse(t, c.spec)
		if got, err := s.Policy(schedule.Policy{}); err != nil || got != c.want {
			t.Errorf("%s: Policy = %+v, %v, want %+v", s, got, err, c.want)
		}
		given := schedule.Policy{CatchUp: "none", Window: time.Minute, StartWithin: time.Second, Max: 3}
		if got, err := s.Policy(given); err != nil || got != given {
			t.Errorf("%s: Policy(%+v) = %+v, %v", s, given, got, err)
		}
	}
	for _, c := range []struct {
		policy schedule.Policy
		want   string
	}{
		{schedule.Policy{CatchUp: "some"}, `catch_up: "some" is not a choice; write one of none, latest, all`},
		{schedule.Policy{Window: -time.Hour}, `catch_up_window: "-1h0m0s" is negative`},
		{schedule.Policy{StartWithin: -time.Second}, `start_within: "-1s" is negative; write a duration like 5m, or leave it out`},
		{schedule.Policy{Max: -1}, `catch_up_max: "-1" is out of range; write a number from 1 to 10000`},
	} {
		if _, err := parse(t, schedule.Spec{Expr: "@daily"}).Policy(c.policy); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Policy(%+v) = %v, want %s", c.policy, err, c.want)
		}
	}
}
