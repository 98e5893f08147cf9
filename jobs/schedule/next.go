package schedule

import (
	"math"
	"time"
)

const (
	// horizon covers every pair of a date and a weekday: 29 February on a given
	// weekday comes every 28 years, or 40 across a year like 2100.
	horizon = 41 * 366 * daySeconds
	// slack is more than any two offsets of a zone differ (24 h at the date line).
	slack = 2 * daySeconds

	minUnix = -62135596800 // 0001-01-01
	maxUnix = 253402300799 // 9999-12-31
)

// Next returns the first tick later than after, in UTC; zero when there is none.
func (s Schedule) Next(after time.Time) time.Time {
	u := after.Unix()
	if u >= maxUnix || s.Manual() {
		return time.Time{}
	}
	if u, ok := s.next(max(u, minUnix-1) + 1); ok {
		return time.Unix(u, 0).UTC()
	}
	return time.Time{}
}

// next returns the first tick at u or later, in Unix seconds.
func (s Schedule) next(u int64) (int64, bool) {
	if s.every > 0 {
		q, r := divmod(u-s.shift, s.every)
		if r > 0 {
			q++
		}
		u = q*s.every + s.shift
		return u, u <= maxUnix
	}
	limit := min(u+horizon, maxUnix)
	if _, at := s.walls.(once); at {
		limit = maxUnix
	}
	for u <= limit {
		g := s.segment(u)
		if u == g.start && s.gapTick(g) {
			return u, true
		}
		low, high := s.lap(g, u)
		w, ok := s.walls.next(max(low, u+g.off), limit+daySeconds)
		switch {
		case ok && w < high:
			return w - g.off, w-g.off <= maxUnix
		case g.end-u <= slack:
			u = g.end // which may repeat wall times before u's
		case ok:
			// No wall time before w matches, so no segment well before it has a tick.
			u = max(g.end, w-g.off-slack)
		default:
			return 0, false
		}
	}
	return 0, false
}

// dst says which of the instants that the wall clock gives a wall time are ticks.
// With an hour written * or */n both passes count, and a gap has none.
type dst struct {
	after         bool // a missing wall time runs at the first instant after the gap
	first, second bool // which pass of a repeated wall time runs
}

func newDST(spec Spec, wild bool) dst {
	if wild {
		return dst{first: true, second: true}
	}
	return dst{
		after:  spec.Gap != "skip",
		first:  spec.Overlap != "second",
		second: spec.Overlap == "second" || spec.Overlap == "both",
	}
}

// segment is a stretch of time [start, end) in which the zone's offset is constant.
type segment struct{ start, end, off int64 }

// segment returns the one that u lies in. An unbounded end is far outside all dates.
func (s Schedule) segment(u int64) segment {
	t := time.Unix(u, 0).In(s.Zone())
	_, off := t.Zone()
	g := segment{math.MinInt64 / 2, math.MaxInt64 / 2, int64(off)}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		g.start = start.Unix()
	}
	if !end.IsZero() {
		g.end = end.Unix()
	}
	if g.end <= u {
		// Beyond its table the time package ends every year after 365 days, so on the
		// last day of a leap year the end that it gives has passed.
		today, _ := divmod(u, daySeconds)
		g.end = (today + 1) * daySeconds
	}
	return g
}

// gapTick reports whether a wall time that the change at g's start left out matches.
func (s Schedule) gapTick(g segment) bool {
	if !s.after {
		return false
	}
	from, to := g.start+s.segment(g.start-1).off, g.start+g.off
	_, ok := s.walls.next(from, to-1)
	return from < to && ok
}

// lap returns the wall times [low, high) of g whose ticks from u on belong to it: all,
// but for a repeated stretch that only the other pass may run.
func (s Schedule) lap(g segment, u int64) (low, high int64) {
	low, high = g.start+g.off, g.end+g.off
	if !s.second && u-g.start < slack {
		low = max(low, g.start+s.segment(g.start-1).off)
	}
	if !s.first && g.end < maxUnix {
		high = min(high, g.end+s.segment(g.end).off)
	}
	return low, high
}

// prev returns the last tick before u.
func (s Schedule) prev(u int64) (int64, bool) {
	if s.every > 0 {
		q, _ := divmod(u-1-s.shift, s.every)
		return q*s.every + s.shift, true
	}
	ticksFrom := func(v int64) bool { t, ok := s.next(v); return ok && t < u }
	low, high := u-1, u // no tick in [high, u)
	for span := int64(1); !ticksFrom(low); span *= 2 {
		if low <= minUnix || span > 2*horizon {
			return 0, false
		}
		low, high = max(low-span, minUnix), low
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; ticksFrom(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return s.next(low)
}

// count returns how many ticks lie in [from, to).
func (s Schedule) count(from, to int64) int64 {
	if s.every > 0 {
		q1, _ := divmod(to-1-s.shift, s.every)
		q0, _ := divmod(from-1-s.shift, s.every)
		return q1 - q0
	}
	n := int64(0)
	for u := from; u < to; {
		g := s.segment(u)
		low, high := s.lap(g, u)
		low, high = max(low, u+g.off), min(high, to+g.off)
		if u == g.start && s.gapTick(g) {
			n++ // one tick, whether or not the first wall time after the gap matches too
			low++
		}
		n += s.walls.count(low, high)
		u = g.end
	}
	return n
}
