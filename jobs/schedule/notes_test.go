package schedule_test

import (
	"testing"
	"time"

	"pawl/jobs/schedule"
)

func TestNotesSayWhatAChangeOfClocksDoes(t *testing.T) {
	t.Parallel()
	const berlin = "Europe/Berlin"
	const spring, spring2 = "2027-03-28T01:00Z", "2027-03-28T01:00Z"
	for _, c := range []struct {
		spec         schedule.Spec
		from, at, to string // at "" is no note
		want         string
	}{
		{schedule.Spec{Expr: "15 2 * * *", Zone: berlin}, "2027-03", spring, spring2, "02:15 does not exist in Europe/Berlin on 2027-03-28; it will run at 03:00 that day (dst.gap: after)"},
		{schedule.Spec{Expr: "15 2 * * *", Zone: berlin, Gap: "skip"}, "2027-03", spring, spring2, "02:15 does not exist in Europe/Berlin on 2027-03-28; it will not run (dst.gap: skip)"},
		{schedule.Spec{Expr: "* 2 * * *", Zone: berlin}, "2027-03", spring, spring2, "02:00 to 02:59 do not exist in Europe/Berlin on 2027-03-28; they will run once, at 03:00 that day (dst.gap: after)"},
		{schedule.Spec{Expr: "0,30 1-3 * * *", Zone: berlin}, "2027-03", spring, spring2, "02:00 and 02:30 do not exist in Europe/Berlin on 2027-03-28; they will run once, at 03:00 that day (dst.gap: after)"},
		{schedule.Spec{Expr: "*/15 * * * *", Zone: berlin}, "2027-03", spring, spring2, "02:00 to 02:45 do not exist in Europe/Berlin on 2027-03-28; they will not run (the hour is written * or */n)"},
		{schedule.Spec{Expr: "7 15 2 * * *", Zone: berlin, Seconds: true}, "2027-03", spring, spring2, "02:15:07 does not exist in Europe/Berlin on 2027-03-28; it will run at 03:00 that day (dst.gap: after)"},
		{schedule.Spec{Expr: "15 2 * * 1-5", Zone: berlin}, "2027-03", "", "", ""}, // the change is on a Sunday
		{schedule.Spec{Expr: "15 3 * * *", Zone: berlin}, "2027-03", "", "", ""},
		{schedule.Spec{Expr: "@every 1h", Zone: berlin}, "2027-03", "", "", ""},
		{schedule.Spec{Expr: "@manual", Zone: berlin}, "2027-03", "", "", ""},
		{schedule.Spec{Expr: "15 2 * * *"}, "2027-03", "", "", ""},
		{schedule.Spec{Expr: "@at 2027-03-28T02:15", Zone: berlin}, "2027-03", spring, spring2, "02:15 does not exist in Europe/Berlin on 2027-03-28; it will run at 03:00 that day (dst.gap: after)"},
		{schedule.Spec{Expr: "0 0 * * *", Zone: "Africa/Cairo"}, "2025-04", "2025-04-24T22:00Z", "2025-04-24T22:00Z", "00:00 does not exist in Africa/Cairo on 2025-04-25; it will run at 01:00 that day (dst.gap: after)"},
		{schedule.Spec{Expr: "15 2 * * *", Zone: "Australia/Lord_Howe"}, "2025-10", "2025-10-04T15:30Z", "2025-10-04T15:30Z", "02:15 does not exist in Australia/Lord_Howe on 2025-10-05; it will run at 02:30 that day (dst.gap: after)"},
		{schedule.Spec{Expr: "30 23 * * *", Zone: "America/Scoresbysund", Period: schedule.PerTick}, "2026-03", "2026-03-29T01:00Z", "2026-03-29T01:00Z", "23:30 does not exist in America/Scoresbysund on 2026-03-28; it will run at 00:00 on 2026-03-29 (dst.gap: after)"},

		{schedule.Spec{Expr: "30 2 * * *", Zone: berlin}, "2026-10", "2026-10-25T00:30Z", "2026-10-25T00:30Z", "02:30 comes twice in Europe/Berlin on 2026-10-25; it will run in the first pass only (dst.overlap: first)"},
		{schedule.Spec{Expr: "30 2 * * *", Zone: berlin, Overlap: "second"}, "2026-10", "2026-10-25T01:30Z", "2026-10-25T01:30Z", "02:30 comes twice in Europe/Berlin on 2026-10-25; it will run in the second pass only (dst.overlap: second)"},
		{schedule.Spec{Expr: "30 2 * * *", Zone: berlin, Overlap: "both", Period: schedule.PerTick}, "2026-10", "2026-10-25T00:30Z", "2026-10-25T01:30Z", "02:30 comes twice in Europe/Berlin on 2026-10-25; it will run in both passes (dst.overlap: both)"},
		{schedule.Spec{Expr: "*/15 * * * *", Zone: berlin}, "2026-10", "2026-10-25T00:00Z", "2026-10-25T01:45Z", "02:00 to 02:45 come twice in Europe/Berlin on 2026-10-25; they will run in both passes (the hour is written * or */n)"},
		{schedule.Spec{Expr: "5,55 1-2 * * *", Zone: berlin}, "2026-10", "2026-10-25T00:05Z", "2026-10-25T00:55Z", "02:05 and 02:55 come twice in Europe/Berlin on 2026-10-25; they will run in the first pass only (dst.overlap: first)"},
		{schedule.Spec{Expr: "0 3 * * *", Zone: berlin}, "2026-10", "", "", ""},
	} {
		s := parse(t, c.spec)
		from := utc(t, c.from+"-01T00:00Z")
		notes := s.Notes(from, from.AddDate(0, 1, 0))
		if c.at == "" {
			if len(notes) != 0 {
				t.Errorf("%s: %+v, want none", s, notes)
			}
			continue
		}
		want := schedule.Note{At: utc(t, c.at), To: utc(t, c.to), Text: c.want}
		if len(notes) != 1 || notes[0] != want {
			t.Errorf("%s:\n got %+v\nwant %+v", s, notes, want)
		}
	}
}

func TestNotesAreOfTheirStretchOnly(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Spec{Expr: "30 2 * * *", Zone: "Europe/Berlin"})
	gap, first := utc(t, "2027-03-28T01:00Z"), utc(t, "2026-10-25T00:30Z")
	for _, c := range []struct {
		from, to time.Time
		want     int
	}{
		{gap, gap.Add(1), 1},
		{gap.Add(-time.Hour), gap, 0},
		{gap.Add(time.Second), gap.Add(time.Hour), 0},
		{first, first.Add(1), 1},
		{first.Add(-time.Hour), first, 0},
		{first.Add(time.Second), first.Add(time.Hour), 0}, // the change itself follows, its tick came before
		{first, gap.Add(1), 2},
		{first.AddDate(-10, 0, 0), first, 20},
		{gap, first, 0},
		{gap, utc(t, "9998-12-31T00:00Z"), 2 * (9999 - 2027)},
	} {
		if got := s.Notes(c.from, c.to); len(got) != c.want {
			t.Errorf("[%s, %s): %d notes, want %d", c.from, c.to, len(got), c.want)
		}
	}
}

// TestNotesCoverTheTicksThatTheyMean compares them with what Next does on the days of
// both changes: exactly the moved and repeated ticks are covered.
func TestNotesCoverTheTicksThatTheyMean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr, overlap, day string
		covered, ticks     int
	}{
		{"30 2 * * *", "first", "2026-10-25", 1, 1},
		{"0,30 1-3 * * *", "first", "2026-10-25", 2, 6},
		{"0,30 1-3 * * *", "second", "2026-10-25", 2, 6},
		{"0,30 1-3 * * *", "both", "2026-10-25", 4, 8},
		{"*/15 * * * *", "", "2026-10-25", 8, 100},
		{"0,30 1-3 * * *", "", "2027-03-28", 1, 4},
		{"0 5 * * *", "", "2027-03-28", 0, 1},
	} {
		s := parse(t, schedule.Spec{Expr: c.expr, Zone: "Europe/Berlin", Overlap: c.overlap})
		day := utc(t, c.day+"T00:00Z")
		notes := s.Notes(day.AddDate(0, 0, -1), day.AddDate(0, 0, 2))
		covered := 0
		ticks := ticksOfDay(s, c.day)
		for _, at := range ticks {
			for _, n := range notes {
				if n.Covers(at) {
					covered++
				}
			}
		}
		if covered != c.covered || len(ticks) != c.ticks {
			t.Errorf("%s on %s: %d of %d ticks are covered, want %d of %d", s, c.day, covered, len(ticks), c.covered, c.ticks)
		}
	}
}

func TestFixedHoursAreThoseThatTheZoneMoves(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]bool{
		"15 2 * * *": true, "0,30 1-3 * * *": true, "* 2 * * *": true, "0 0-23 * * *": true, "@daily": true, "@yearly": true, "@at 2026-09-16T02:15": true,
		"15 * * * *": false, "0 */6 * * *": false, "0 ?/6 * * *": false, "@hourly": false, "@every 24h": false, "@manual": false,
	} {
		if got := parse(t, schedule.Spec{Expr: expr}).FixedHour(); got != want {
			t.Errorf("%s: %t, want %t", expr, got, want)
		}
	}
}
