package schedule

import (
	"fmt"
	"time"
)

// Period is what one tick owes: [Start, End) in UTC, named by Key within its job.
type Period struct {
	Key        string    // "2026-09-16", "2026-09-16T14+02:00", "2026-W38", "2026-09", or a UTC instant
	Start, End time.Time // of the period itself, after Offset; for a tick, until the next one
	Offset     int       // the schedule's: how many periods lie between the tick's own and this one
}

// The layouts of keys. A week's has none: it is printed from the ISO year and week.
const (
	dayLayout   = "2006-01-02"
	hourLayout  = "2006-01-02T15-07:00"
	monthLayout = "2006-01"
	tickLayout  = "2006-01-02T15:04:05Z"
)

// Period returns the period that tick owes: the one that it lies in, moved by the
// schedule's offset. Any instant may be asked; fractions of a second are dropped.
func (s Schedule) Period(tick time.Time) Period {
	u := tick.Unix()
	g := s.segment(u)
	day, _ := divmod(u+g.off, daySeconds)
	switch s.Kind() {
	case Day:
		return s.days(day + int64(s.offset))
	case Week:
		return s.week(day + 7*int64(s.offset))
	case Month:
		y, m, _ := date(day)
		return s.month(y, m+time.Month(s.offset))
	case Hour:
		return s.hours(u)
	default:
		return s.ticks(u)
	}
}

// days returns the period of one local date.
func (s Schedule) days(day int64) Period {
	return s.period(time.Unix(day*daySeconds, 0).UTC().Format(dayLayout), s.midnight(day), s.midnight(day+1))
}

// week returns the ISO week that a local date lies in.
func (s Schedule) week(day int64) Period {
	_, sinceMonday := divmod(day+3, 7) // 1970-01-01 was a Thursday
	monday := day - sinceMonday
	y, w := time.Unix(monday*daySeconds, 0).UTC().ISOWeek()
	return s.period(fmt.Sprintf("%04d-W%02d", y, w), s.midnight(monday), s.midnight(monday+7))
}

// month returns the period of a calendar month; months out of range carry over.
func (s Schedule) month(y int, m time.Month) Period {
	first := dayOf(y, m, 1)
	key := time.Unix(first*daySeconds, 0).UTC().Format(monthLayout)
	return s.period(key, s.midnight(first), s.midnight(dayOf(y, m+1, 1)))
}

// hours returns the local hour that u lies in, moved by the offset.
func (s Schedule) hours(u int64) Period {
	start, end := s.hourOf(u)
	for range s.offset {
		start, end = s.hourOf(end)
	}
	for range -s.offset {
		start, end = s.hourOf(start - 1)
	}
	return s.period(time.Unix(start, 0).In(s.Zone()).Format(hourLayout), start, end)
}

// hourOf returns the local hour [start, end) that u lies in. A change of clocks within
// it cuts it, since its parts have different offsets.
func (s Schedule) hourOf(u int64) (start, end int64) {
	g := s.segment(u)
	_, past := divmod(u+g.off, 3600)
	start, end = u-past, u-past+3600
	if start < g.start && s.segment(start).off != g.off {
		start = g.start
	}
	if end > g.end && s.segment(g.end).off != g.off {
		end = g.end
	}
	return start, end
}

// ticks returns the period of the tick u, moved by the offset along the schedule.
func (s Schedule) ticks(u int64) Period {
	for range s.offset {
		if t, ok := s.next(u + 1); ok {
			u = t
		}
	}
	for range -s.offset {
		if t, ok := s.prev(u); ok {
			u = t
		}
	}
	end := u
	if !s.Manual() && u < maxUnix {
		if t, ok := s.next(max(u, minUnix) + 1); ok {
			end = t
		}
	}
	return s.period(time.Unix(u, 0).UTC().Format(tickLayout), u, end)
}

func (s Schedule) period(key string, start, end int64) Period {
	return Period{key, time.Unix(start, 0).UTC(), time.Unix(end, 0).UTC(), s.offset}
}

// midnight returns the first instant of a local date. Where the clock skips midnight
// that is the change itself; where it repeats midnight, the first pass.
func (s Schedule) midnight(day int64) int64 {
	w := day * daySeconds
	g := s.segment(w - slack)
	for w >= g.end+g.off {
		g = s.segment(g.end)
	}
	return max(g.start, w-g.off)
}
