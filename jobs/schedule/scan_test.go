package schedule_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

var (
	scanAll  = flag.Bool("scan.all", false, "walk every minute from 2024 to 2038, a few minutes, and not a sample of them")
	scanSeed = flag.Uint64("scan.seed", 2026, "which sample to walk")
)

var scanZones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "America/Havana", "America/Santiago", "America/Scoresbysund",
	"Africa/Cairo", "Africa/Casablanca", "Asia/Beirut", "Antarctica/Troll", "Australia/Lord_Howe", "Pacific/Chatham",
}

var scanExprs = append([]string{
	"59 * * * *", "0,30 * * * *", "*/13 * * * *", "0 */3 * * *", "10 */24 * * *", "*/20 */4 * * 0",
	"0 1 * * *", "0 2 * * *", "59 1 * * *", "0 3 * * *", "30 23 * * *", "45 2 * * 0", "15 0 * * 6",
	"0 2,14 * * *", "0 0-23/2 * * *", "*/30 2-3 * * *", "5,25 1,2,3 28-31 * *", "30 2 1-7 * 0", "0 12 31 * *", "0 2 * 3,4,9,10 0,6",
}, oracleExprs...)

const (
	scanFrom = 2024
	scanTo   = 2038
)

// TestNextAgreesWithEveryMinute walks minutes of 2024 to 2038 in 12 zones under 40
// expressions: all of them with -scan.all, else the changes of clocks of some years
// and some weeks between them.
func TestNextAgreesWithEveryMinute(t *testing.T) {
	t.Parallel()
	if len(scanZones) != 12 || len(scanExprs) != 40 {
		t.Fatalf("%d zones, %d expressions", len(scanZones), len(scanExprs))
	}
	for i, zone := range scanZones {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			var lines []*traced
			for _, expr := range scanExprs {
				lines = append(lines, trace(t, schedule.Spec{Expr: expr, Zone: zone}))
			}
			rnd := rand.New(rand.NewPCG(*scanSeed, uint64(i)))
			loc := lines[0].s.Zone()
			scan(t, lines, loc, scanStretches(rnd, loc))
		})
	}
}

// TestNextAgreesWithEveryMinuteForEveryChoice walks the changes of clocks under all
// other choices of dst.
func TestNextAgreesWithEveryMinuteForEveryChoice(t *testing.T) {
	t.Parallel()
	for i, zone := range scanZones[1:] {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			var lines []*traced
			for _, expr := range scanExprs {
				for _, choice := range [][2]string{{"after", "second"}, {"after", "both"}, {"skip", "first"}, {"skip", "second"}, {"skip", "both"}} {
					lines = append(lines, trace(t, schedule.Spec{Expr: expr, Zone: zone, Gap: choice[0], Overlap: choice[1]}))
				}
			}
			rnd := rand.New(rand.NewPCG(*scanSeed, uint64(100+i)))
			loc := lines[0].s.Zone()
			scan(t, lines, loc, changesOf(rnd, loc))
		})
	}
}

func scan(t *testing.T, lines []*traced, loc *time.Location, stretches [][2]time.Time) {
	t.Helper()
	steps, ticks := 0, 0
	for _, w := range stretches {
		n, m := newWalker(w[0], w[1], 60, loc).run(t, lines)
		steps, ticks = steps+n, ticks+m
	}
	t.Logf("%d minutes, %d schedules, %d ticks", steps, len(lines), ticks)
}

// scanStretches returns all of the years, or the sample.
func scanStretches(rnd *rand.Rand, loc *time.Location) [][2]time.Time {
	first, end := time.Date(scanFrom, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(scanTo+1, 1, 1, 0, 0, 0, 0, time.UTC)
	if *scanAll {
		return [][2]time.Time{{first, end}}
	}
	stretches := changesOf(rnd, loc)
	for range 8 {
		from := first.AddDate(0, 0, rnd.IntN(int(end.Sub(first).Hours())/24-7))
		stretches = append(stretches, [2]time.Time{from, from.AddDate(0, 0, 7)})
	}
	return stretches
}

// changesOf returns a day around each change of clocks, of five years in the sample.
func changesOf(rnd *rand.Rand, loc *time.Location) [][2]time.Time {
	var stretches [][2]time.Time
	years := rnd.Perm(scanTo - scanFrom + 1)
	if !*scanAll {
		years = years[:5]
	}
	for _, year := range years {
		u := time.Date(scanFrom+year, 1, 1, 0, 0, 0, 0, time.UTC)
		for next := u; u.Year() == scanFrom+year; u = next {
			next = u.Add(time.Hour)
			_, before := u.In(loc).Zone()
			if _, after := next.In(loc).Zone(); before != after {
				stretches = append(stretches, [2]time.Time{u.Add(-14 * time.Hour), next.Add(14 * time.Hour)})
			}
		}
	}
	return stretches
}

// TestNextAgreesWithEverySecond does the same with six fields, around single changes.
func TestNextAgreesWithEverySecond(t *testing.T) {
	t.Parallel()
	for zone, change := range map[string]string{
		"Europe/Berlin": "2026-10-25T01:00Z", "America/New_York": "2027-03-14T07:00Z", "Australia/Lord_Howe": "2026-04-04T15:00Z", "Africa/Cairo": "2026-04-23T22:00Z",
	} {
		var lines []*traced
		for _, expr := range []string{
			"* * * * * *", "*/7 * * * * *", "30 */5 1-3 * * *", "59 59 */2 * * *", "0 0 0 * * *", "1,2 30 2 * * 0", "*/20 15 2,3 * * *", "15 * 1 * * *",
		} {
			for _, overlap := range []string{"first", "second", "both"} {
				lines = append(lines, trace(t, schedule.Spec{Expr: expr, Zone: zone, Seconds: true, Overlap: overlap}))
			}
		}
		at := utc(t, change)
		newWalker(at.Add(-3*time.Hour), at.Add(3*time.Hour), 1, lines[0].s.Zone()).run(t, lines)
	}
}
