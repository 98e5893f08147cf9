package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DueBy is the wall time by which a period must be complete, counted from the midnight
// of its tick's local date. It is in whole minutes; 0 is none.
type DueBy time.Duration

const mostDueDays = 31

// String returns it as in the job file: "06:00", "06:00+1d", or "" for none.
func (d DueBy) String() string {
	if d == 0 {
		return ""
	}
	days, rest := divmod(int64(time.Duration(d)/time.Second), daySeconds)
	text := fmt.Sprintf("%02d:%02d", rest/3600, rest/60%60)
	if days > 0 {
		text += fmt.Sprintf("+%dd", days)
	}
	return text
}

// ParseDueBy reads "06:00" or "06:00+1d" (up to 31 days); "" is none. Without days it
// must be after the schedule's last tick of a day, else that one would be overdue as it
// starts. The error is a [*FieldError].
func (s Schedule) ParseDueBy(text string) (DueBy, error) {
	if text == "" {
		return 0, nil
	}
	d, ok := readDueBy(text)
	switch {
	case !ok:
		return 0, &FieldError{"due_by", text, "is not a local time", `write "06:00", or "06:00+1d" for the next day (at most +31d)`}
	case s.Manual():
		return 0, &FieldError{"due_by", text, "has no tick to count from, since the schedule is @manual", "remove it, or write a schedule"}
	}
	if last := s.lastClock(); int64(time.Duration(d)/time.Second) <= last {
		hour, _, _ := strings.Cut(text, "+")
		return 0, &FieldError{
			"due_by", text, fmt.Sprintf("is not after %s, when %q may run", clock(last), s.expr),
			fmt.Sprintf(`write a later time, or "%s+1d" for the day after`, hour),
		}
	}
	return d, nil
}

// readDueBy reads the form only.
func readDueBy(text string) (DueBy, bool) {
	hour, more, plus := strings.Cut(text, "+")
	t, err := time.Parse("15:04", hour)
	if err != nil || len(hour) != len("15:04") {
		return 0, false
	}
	days := 0
	if plus {
		number, unit := strings.CutSuffix(more, "d")
		days, err = strconv.Atoi(number)
		if !unit || err != nil || days < 1 || days > mostDueDays || strconv.Itoa(days) != number {
			return 0, false
		}
	}
	return DueBy(time.Duration(days)*24*time.Hour + time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute), true
}

// lastClock returns the latest time of day that a tick may have, in seconds.
func (s Schedule) lastClock() int64 {
	switch w := s.walls.(type) {
	case fields:
		_, last := w.clocks()
		return last
	case once:
		_, last := divmod(int64(w), daySeconds)
		return last
	}
	return daySeconds - 1 // @every wanders over the day as the clocks change
}

// DueAt returns the instant by which the period of tick must be complete, in UTC; zero
// if d is none. It is always after a tick of the schedule: a wall time that is repeated
// counts in the first pass after the tick, and one that a gap left out as much later as
// the clock was put forward.
func (s Schedule) DueAt(d DueBy, tick time.Time) time.Time {
	if d == 0 {
		return time.Time{}
	}
	u := tick.Unix()
	g := s.segment(u)
	day, _ := divmod(u+g.off, daySeconds)
	w := day*daySeconds + int64(time.Duration(d)/time.Second)
	if w <= u+g.off && u == g.start && s.gapTick(g) {
		// The gap moved the tick on to its due time or past it: it keeps its span.
		m, _ := s.match(g.start+s.segment(g.start-1).off, g.start+g.off)
		return utcTime(u + w - m.last)
	}
	for w >= g.end+g.off {
		off := g.off
		if g = s.segment(g.end); w < g.start+g.off {
			return utcTime(w - off)
		}
	}
	return utcTime(w - g.off)
}

// LateAfter returns how long after the tick a run that hasn't started is late, unless
// the job says otherwise: 10 minutes, or half the time until the next tick if each tick
// is a period of its own and that is less.
func (s Schedule) LateAfter(tick time.Time) time.Duration {
	if s.Kind() != PerTick {
		return onTime // half of any other period is longer
	}
	next := s.Next(tick)
	if next.IsZero() {
		return onTime
	}
	return min(onTime, next.Sub(tick)/2)
}
