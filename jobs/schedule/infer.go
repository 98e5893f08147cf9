package schedule

import (
	"time"
)

// infer returns the kind of period that the fields as written stand for. What is not
// plainly a day, hour, week or month is a tick.
func (w written) infer() Kind {
	oneMinute := w.values[second] == 1 && w.one(minute)
	anyDate := w.star(dayOfMonth) && w.star(month)
	switch {
	case !oneMinute:
		return PerTick
	case w.star(hour):
		return Hour
	case !w.one(hour):
		return PerTick
	case anyDate && w.one(dayOfWeek):
		return Week
	case anyDate:
		return Day
	case w.one(dayOfMonth) && w.star(month) && w.star(dayOfWeek):
		return Month
	}
	return PerTick
}

// one reports whether field i has one value that isn't written with a star.
func (w written) one(i int) bool {
	return w.values[i] == 1 && w.text[i][0] != '*' && w.text[i][0] != '?'
}

// checkFires refuses a schedule without a single tick.
func (s Schedule) checkFires() error {
	o, at := s.walls.(once)
	year2000 := dayOf(2000, 1, 1) * daySeconds
	if _, ok := s.walls.next(year2000, year2000+horizon); !at && !ok {
		return about(ErrNever, "schedule", s.expr, "write a day that the month has")
	}
	if at && s.Next(time.Unix(int64(o)-slack, 0)).IsZero() {
		return &FieldError{
			"schedule", s.expr, "does not exist in " + s.loc.String() + ", where the clock is put forward",
			"write a time after the change, or dst: {gap: after}",
		}
	}
	return nil
}

// The years in which checkOnce looks at changes of clocks: fixed, since the answer
// may not depend on the day of the question.
const (
	checkFrom = 2025
	checkTo   = 2036
)

// checkOnce refuses a schedule that owes one period twice: the second tick would find
// it taken and be lost.
func (s Schedule) checkOnce() error {
	if s.kind == PerTick || s.Manual() {
		return nil
	}
	start := dayOf(checkFrom, 1, 1) * daySeconds
	end := dayOf(checkTo, 1, 1) * daySeconds
	if p, n := s.twice(start, end); n > 1 {
		return s.badPeriod(p, n)
	}
	for g := s.segment(start); g.end < end; g = s.segment(g.end) {
		if p, n := s.twice(g.end-slack, g.end+slack); n > 1 {
			return s.badPeriod(p, n)
		}
	}
	return nil
}

// badPeriod says that p gets n ticks.
func (s Schedule) badPeriod(p Period, n int64) error {
	a := "a " + string(s.kind)
	if s.kind == Hour {
		a = "an hour"
	}
	where, fix := a, "run once "+a
	if s.segment(p.Start.Unix()-1).off != s.segment(p.End.Unix()-1).off {
		where, fix = "in "+p.Key+", when the clocks change,", "set dst: {gap: skip, overlap: first}"
	}
	if s.every > 0 {
		where, fix = "in "+p.Key, "write cron fields that run once "+a
	}
	return about(&TicksError{s.expr, n, where}, "period", string(s.kind), "use period: tick, or "+fix)
}

// twice returns the first period in [u, end) that gets more than one tick, and how
// many. It looks at a few hundred ticks at most.
func (s Schedule) twice(u, end int64) (Period, int64) {
	s.offset = 0
	last := Period{}
	for range 400 {
		t, ok := s.next(u)
		if !ok || t >= end {
			break
		}
		p := s.Period(time.Unix(t, 0))
		if p.Key == last.Key {
			return p, max(2, s.count(p.Start.Unix(), p.End.Unix()))
		}
		last, u = p, t+1
	}
	return Period{}, 0
}
