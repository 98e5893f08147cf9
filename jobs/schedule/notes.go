package schedule

import (
	"fmt"
	"time"
)

// Note says what a change of clocks does to the ticks in [At, To], UTC. Where a change
// takes ticks away, At and To are the change itself, and no tick needs to be there.
type Note struct {
	At, To time.Time
	Text   string // a clause without a full stop, that names zone, date and setting
}

// Covers reports whether the note is about the tick at that instant.
func (n Note) Covers(tick time.Time) bool { return !tick.Before(n.At) && !tick.After(n.To) }

// Notes returns what the changes of clocks in [from, to) do to the schedule, oldest
// first: which wall times are missing or come twice, and what runs then. @every and
// @manual have none. The cost grows with the number of changes, not with the ticks.
func (s Schedule) Notes(from, to time.Time) []Note {
	if s.walls == nil {
		return nil
	}
	var notes []Note
	end := min(to.Unix()+slack, maxUnix)
	for g := s.segment(max(from.Unix(), minUnix) - slack); g.end < end; {
		after := s.segment(g.end)
		if n, ok := s.note(g, after); ok && n.To.Unix() >= from.Unix() && n.At.Before(to) {
			notes = append(notes, n)
		}
		g = after
	}
	return notes
}

// note says what the change from one segment to the next does, if anything.
func (s Schedule) note(before, after segment) (Note, bool) {
	at := after.start
	old, now := at+before.off, at+after.off // the wall times before and after the change
	m, ok := s.match(min(old, now), max(old, now))
	switch {
	case !ok:
		return Note{}, false
	case old < now:
		return Note{utcTime(at), utcTime(at), s.gapText(m, now)}, true
	}
	n := Note{utcTime(m.first - before.off), utcTime(m.last - after.off), s.overlapText(m)}
	if !s.second {
		n.To = utcTime(m.last - before.off)
	}
	if !s.first {
		n.At = utcTime(m.first - after.off)
	}
	return n, true
}

// matched are the wall times of a schedule within a stretch.
type matched struct{ first, last, count int64 }

// match returns the wall times in [from, to) that the schedule names, false if none.
func (s Schedule) match(from, to int64) (matched, bool) {
	first, ok := s.walls.next(from, to-1)
	if !ok {
		return matched{}, false
	}
	m := matched{first, first, s.walls.count(from, to)}
	for low, high := first, to; high-low > 1; {
		if mid := low + (high-low)/2; s.walls.count(mid, to) > 0 {
			low = mid
		} else {
			high = mid
		}
		m.last = low
	}
	return m, true
}

// gapText says that the wall times m are missing, and what runs at now, the wall time
// at which the clock goes on.
func (s Schedule) gapText(m matched, now int64) string {
	does, it, once := "does", "it", ""
	if m.count > 1 {
		does, it, once = "do", "they", " once,"
	}
	will, why := "will not run", "the hour is written * or */n"
	switch day := wallDate(now); {
	case s.after && day == wallDate(m.first):
		will, why = "will run"+once+" at "+clock(now)+" that day", "dst.gap: after"
	case s.after:
		will, why = "will run"+once+" at "+clock(now)+" on "+day, "dst.gap: after"
	case s.fixed:
		why = "dst.gap: skip"
	}
	return fmt.Sprintf("%s %s not exist in %s on %s; %s %s (%s)", m, does, s.Zone(), wallDate(m.first), it, will, why)
}

// overlapText says that the wall times m come twice, and in which pass they run.
func (s Schedule) overlapText(m matched) string {
	comes, it := "comes", "it"
	if m.count > 1 {
		comes, it = "come", "they"
	}
	pass, why := "in both passes", "dst.overlap: both"
	switch {
	case !s.fixed:
		why = "the hour is written * or */n"
	case !s.second:
		pass, why = "in the first pass only", "dst.overlap: first"
	case !s.first:
		pass, why = "in the second pass only", "dst.overlap: second"
	}
	return fmt.Sprintf("%s %s twice in %s on %s; %s will run %s (%s)", m, comes, s.Zone(), wallDate(m.first), it, pass, why)
}

// String returns "02:15", "02:15 and 02:45" or "02:00 to 02:59".
func (m matched) String() string {
	switch m.count {
	case 1:
		return clock(m.first)
	case 2:
		return clock(m.first) + " and " + clock(m.last)
	}
	return clock(m.first) + " to " + clock(m.last)
}

// clock prints the time of day of a wall time, with seconds only if it has some.
func clock(w int64) string {
	t := utcTime(w)
	if t.Second() != 0 {
		return t.Format("15:04:05")
	}
	return t.Format("15:04")
}

func wallDate(w int64) string { return utcTime(w).Format(dayLayout) }

func utcTime(u int64) time.Time { return time.Unix(u, 0).UTC() }
