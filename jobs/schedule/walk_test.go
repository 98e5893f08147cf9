package schedule_test

import (
	"strings"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

// traced is a schedule on a walk, and the test's own reading of its spec.
type traced struct {
	s    schedule.Schedule
	spec schedule.Spec
	rule rule
	secs [60]bool
	day  bool      // whether the walk's present date matches
	next time.Time // the tick that the package says comes next
}

func trace(t *testing.T, spec schedule.Spec) *traced {
	t.Helper()
	spec.Period = schedule.PerTick
	spec.DayMatch = "or"
	f := &traced{s: parse(t, spec), spec: spec}
	expr := spec.Expr
	if spec.Seconds {
		first, rest, _ := strings.Cut(expr, " ")
		expr = rest
		f.secs = readRule(t, first+" * * * *").sets[0] // seconds are written like minutes
	} else {
		f.secs[0] = true
	}
	f.rule = readRule(t, expr)
	return f
}

// matches asks for a wall time in seconds; its date was asked before.
func (f *traced) matches(w int64) bool {
	return f.day && f.rule.sets[0][w/60%60] && f.rule.sets[1][w/3600%24] && f.secs[w%60]
}

func (f *traced) matchesDate(w int64) bool {
	d := time.Unix(w, 0).UTC()
	dom, dow := f.rule.sets[2][d.Day()], f.rule.sets[4][int(d.Weekday())]
	return f.rule.sets[3][int(d.Month())] && (dom && dow || f.rule.or && (dom || dow))
}

// pass reports whether the n-th of all passes over a wall time is one that runs.
func (f *traced) pass(n, all uint8) bool {
	switch {
	case f.rule.wild || f.spec.Overlap == "both":
		return true
	case f.spec.Overlap == "second":
		return n == all
	}
	return n == 1
}

// walker steps through a stretch and knows each step's wall time, how often the zone
// gives it, and what the steps leave out.
type walker struct {
	from, to, step int64
	first          int64   // the wall time of walls[0]
	walls          []int64 // of each step from before on
	seen, all      []uint8
	before         int64 // where walls begins, long enough before from
}

const around = 26 * 3600 // more than any change of clocks

func newWalker(from, to time.Time, step int64, loc *time.Location) *walker {
	k := &walker{from: from.Unix(), to: to.Unix(), step: step, before: from.Unix() - around}
	end := k.to + around
	k.first = k.before - around
	k.all = make([]uint8, (end-k.first+around)/step)
	k.seen = make([]uint8, len(k.all))
	for u := k.before; u < end; u += step {
		_, off := time.Unix(u, 0).In(loc).Zone()
		k.walls = append(k.walls, u+int64(off))
		k.all[(u+int64(off)-k.first)/step]++
	}
	return k
}

// run compares each step with Next: by the contract's words a step is a tick if its
// wall time matches in a pass that runs, or one that a gap just left out matches.
func (k *walker) run(t *testing.T, lines []*traced) (steps, ticks int) {
	t.Helper()
	for _, f := range lines {
		f.next = f.s.Next(time.Unix(k.from-1, 0))
	}
	date, last := int64(-1), k.walls[0]
	for i, w := range k.walls {
		u := k.before + int64(i)*k.step
		at := (w - k.first) / k.step
		k.seen[at]++
		gap := last + k.step
		last = w
		if u < k.from || u >= k.to {
			continue
		}
		steps++
		if w/86400 != date {
			date = w / 86400
			for _, f := range lines {
				f.day = f.matchesDate(w)
			}
		}
		for _, f := range lines {
			hit := f.matches(w) && f.pass(k.seen[at], k.all[at]) || gap < w && f.missed(gap, w, k.step)
			if hit {
				ticks++
			}
			if due := f.next.Unix() == u; due != hit {
				t.Errorf("%s %+v: a tick at %s: %t by the walk, %t by Next", f.s, f.spec, time.Unix(u, 0).In(f.s.Zone()), hit, due)
				return steps, ticks
			}
			if hit {
				f.next = f.s.Next(f.next)
			}
		}
	}
	return steps, ticks
}

// missed reports whether one of the wall times [from, to) that a gap left out runs.
func (f *traced) missed(from, to, step int64) bool {
	if f.rule.wild || f.spec.Gap == "skip" {
		return false
	}
	day := f.day
	defer func() { f.day = day }()
	for w := from; w < to; w += step {
		if f.day = f.matchesDate(w); f.matches(w) {
			return true
		}
	}
	return false
}
