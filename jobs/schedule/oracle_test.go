package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

// rule is the test's own reading of five cron fields, sharing nothing with the package.
type rule struct {
	sets [5][60]bool
	wild bool
	or   bool
}

func readRule(t *testing.T, expr string) rule {
	t.Helper()
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%q: %v", expr, err)
		}
		return n
	}
	var r rule
	bottom, top := [5]int{0, 0, 1, 1, 0}, [5]int{59, 23, 31, 12, 6}
	for i, text := range strings.Fields(expr) {
		if i == 1 && text[0] == '*' {
			r.wild = true
		}
		for item := range strings.SplitSeq(text, ",") {
			span, step, stepped := strings.Cut(item, "/")
			lo, hi, ranged := strings.Cut(span, "-")
			by, a, b := 1, bottom[i], top[i]
			if lo != "*" {
				a = number(lo)
				b = a
			}
			if ranged {
				b = number(hi)
			}
			if stepped {
				by = number(step)
			}
			for v := a; v <= b; v += by {
				r.sets[i][v] = true
			}
		}
	}
	f := strings.Fields(expr)
	r.or = f[2] != "*" && f[4] != "*"
	return r
}

func (r rule) match(w time.Time) bool {
	dom, dow := r.sets[2][w.Day()], r.sets[4][int(w.Weekday())]
	day := dom && dow || r.or && (dom || dow)
	return day && r.sets[3][int(w.Month())] && r.sets[1][w.Hour()] && r.sets[0][w.Minute()]
}

// wall returns u's wall time in loc, written as if it were UTC.
func wall(u time.Time, loc *time.Location) time.Time {
	_, off := u.In(loc).Zone()
	return u.UTC().Add(time.Duration(off) * time.Second)
}

// walk visits every minute of a stretch and reports which are ticks, by the contract's
// words: a repeated wall minute counts once unless the hour is wild, and what a gap
// left out runs at the first instant after it.
func (r rule) walk(from, to time.Time, loc *time.Location, visit func(u time.Time)) {
	seen := map[int64]bool{}
	before := wall(from.Add(-time.Minute), loc)
	// What was seen up to a day before can be repeated in the stretch.
	for u := from.Add(-25 * time.Hour); u.Before(from); u = u.Add(time.Minute) {
		seen[wall(u, loc).Unix()] = true
	}
	for u := from; u.Before(to); u = u.Add(time.Minute) {
		w := wall(u, loc)
		hit := r.match(w) && (r.wild || !seen[w.Unix()])
		for m := before.Add(time.Minute); !r.wild && m.Before(w); m = m.Add(time.Minute) {
			hit = hit || r.match(m)
		}
		seen[w.Unix()] = true
		before = w
		if hit {
			visit(u)
		}
	}
}

var oracleExprs = []string{
	"* * * * *", "*/15 * * * *", "0 * * * *", "5 */2 * * *", "7 */5 * * 1-5",
	"0 0 * * *", "30 1 * * *", "30 2 * * *", "15 2 * * 2-6", "45 23 * * *", "59 23 31 12 *",
	"0,30 1-3 * * *", "* 2 * * *", "*/7 0-23 * * *", "10-50/20 0-4/2 * * *",
	"0 0 * * 0", "0 0 1 * *", "0 3 29 2 *", "30 0 13 * 5", "20 0 */10 3,10,11 *",
}

// TestNextAgreesWithAMinuteWalk compares Next with a walk over every minute around each
// change of clocks and over stretches of plain days.
func TestNextAgreesWithAMinuteWalk(t *testing.T) {
	t.Parallel()
	for _, z := range []struct {
		zone  string
		years []int
	}{
		{"UTC", []int{2026}},
		{"America/New_York", []int{2025, 2044}},
		{"America/Los_Angeles", []int{2025}},
		{"Europe/London", []int{2026}},
		{"Europe/Berlin", []int{2025, 2036, 2038}},
		{"Australia/Lord_Howe", []int{2025, 2026}},
		{"America/Santiago", []int{2026}},
		{"Asia/Beirut", []int{2026}},
		{"America/Havana", []int{2026}},
		{"Africa/Cairo", []int{2025}},
		{"Antarctica/Troll", []int{2026}},
		{"Africa/Casablanca", []int{2026, 2030}},
		{"Asia/Kolkata", []int{2026}},
		{"Pacific/Chatham", []int{2026}},
		{"America/St_Johns", []int{2010, 2026}}, // changed at 00:01 until 2011
		{"Pacific/Apia", []int{2011}},           // left out 30 December
		{"America/Sao_Paulo", []int{2018}},
		{"Asia/Pyongyang", []int{2018}},
	} {
		t.Run(z.zone, func(t *testing.T) {
			t.Parallel()
			loc := parse(t, schedule.Spec{Expr: "@manual", Zone: z.zone}).Zone()
			for _, expr := range oracleExprs {
				s := parse(t, schedule.Spec{Expr: expr, Zone: z.zone, DayMatch: "or"})
				for _, year := range z.years {
					for _, from := range stretches(loc, year) {
						compare(t, s, readRule(t, expr), from, from.Add(40*time.Hour))
					}
				}
			}
		})
	}
}

// stretches returns starts 20 hours before each change of clocks and before some dates.
func stretches(loc *time.Location, year int) []time.Time {
	first := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	starts := []time.Time{
		first.Add(-20 * time.Hour), first.AddDate(0, 1, 27), first.AddDate(0, 8, 12), first.AddDate(0, 12, -2),
	}
	for u := first; u.Year() == year; u = u.Add(time.Hour) {
		_, before := u.In(loc).Zone()
		_, after := u.Add(time.Hour).In(loc).Zone()
		if before != after {
			starts = append(starts, u.Add(-20*time.Hour))
		}
	}
	return starts
}

func compare(t *testing.T, s schedule.Schedule, r rule, from, to time.Time) {
	t.Helper()
	next := s.Next(from.Add(-time.Second))
	r.walk(from, to, s.Zone(), func(u time.Time) {
		if !next.Equal(u) {
			t.Errorf("%s: Next = %s, the walk finds %s", s, next.In(s.Zone()), u.In(s.Zone()))
		}
		next = s.Next(u)
	})
	if !next.IsZero() && next.Before(to) {
		t.Errorf("%s: Next = %s, the walk finds none", s, next.In(s.Zone()))
	}
}

// TestNextOnlyMovesForward asks from random instants: the answer is later, a question
// from anywhere in between has the same answer, and each tick is found again.
func TestNextOnlyMovesForward(t *testing.T) {
	t.Parallel()
	seed := uint64(20260916)
	rnd := rand.New(rand.NewPCG(seed, 1))
	zones := []string{"UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "America/Havana"}
	for i := range 4000 {
		spec := schedule.Spec{
			Expr: randomExpr(rnd), Zone: zones[rnd.IntN(len(zones))], DayMatch: []string{"or", "and"}[rnd.IntN(2)],
			Gap: []string{"", "skip"}[rnd.IntN(2)], Overlap: []string{"", "second", "both"}[rnd.IntN(3)], Period: schedule.PerTick,
		}
		s, err := schedule.Parse(spec)
		if err != nil {
			continue // a random date that never comes
		}
		after := time.Unix(rnd.Int64N(3_000_000_000), rnd.Int64N(1e9))
		next := s.Next(after)
		if next.IsZero() {
			continue
		}
		if !next.After(after) {
			t.Fatalf("seed %d, round %d: %+v: Next(%s) = %s", seed, i, spec, after.UTC(), next)
		}
		between := after.Add(time.Duration(rnd.Int64N(int64(next.Sub(after)))))
		if got := s.Next(between); !got.Equal(next) {
			t.Fatalf("seed %d, round %d: %+v: Next(%s) = %s but Next(%s) = %s", seed, i, spec, after.UTC(), next, between.UTC(), got)
		}
		if got := s.Next(next.Add(-1)); !got.Equal(next) {
			t.Fatalf("seed %d, round %d: %+v: the tick %s is not found again", seed, i, spec, next)
		}
	}
}

func randomExpr(rnd *rand.Rand) string {
	field := func(low, high int) string {
		a, b := low+rnd.IntN(high-low+1), low+rnd.IntN(high-low+1)
		switch rnd.IntN(5) {
		case 0, 1:
			return "*"
		case 2:
			return fmt.Sprintf("*/%d", 1+rnd.IntN(high-low+1))
		case 3:
			return fmt.Sprintf("%d-%d", min(a, b), max(a, b))
		}
		return strconv.Itoa(a)
	}
	return strings.Join([]string{field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)}, " ")
}
