package schedule

import (
	"math/bits"
	"time"
)

// walls are the wall times that a schedule names, in seconds since 1970 as if they
// were UTC, whatever the zone makes of them.
type walls interface {
	// next returns the first wall time in [w, limit].
	next(w, limit int64) (int64, bool)
	// count returns how many wall times lie in [from, to).
	count(from, to int64) int64
}

const daySeconds = 24 * 60 * 60

// fields are the values of a cron line, one bit each.
type fields struct {
	second, minute, hour, dom, month, dow uint64
	union                                 bool // day-of-month or day-of-week, not both
}

func newFields(m [6]uint64, union bool) fields {
	return fields{m[second], m[minute], m[hour], m[dayOfMonth], m[month], m[dayOfWeek], union}
}

func (f fields) next(w, limit int64) (int64, bool) {
	day, sec := divmod(w, daySeconds)
	last, _ := divmod(limit, daySeconds)
	for {
		found, ok := f.nextDay(day, last)
		if !ok {
			return 0, false
		}
		if found > day {
			sec = 0
		}
		if clock, ok := f.nextClock(sec); ok {
			w = found*daySeconds + clock
			return w, w <= limit
		}
		day, sec = found+1, 0
	}
}

// nextDay returns the first matching day in [day, last], counted from 1970-01-01.
func (f fields) nextDay(day, last int64) (int64, bool) {
	y, m, d := date(day)
	for day <= last {
		switch {
		case !has(f.month, int64(m)):
			day = dayOf(y, m+1, 1)
			y, m, d = date(day)
			continue
		case f.matches(day, d):
			return day, true
		}
		day++
		if d++; d > 28 {
			y, m, d = date(day)
		}
	}
	return 0, false
}

// matches reports whether the d-th of a matching month is one of the days asked for.
func (f fields) matches(day int64, d int) bool {
	_, weekday := divmod(day+4, 7) // 1970-01-01 was a Thursday
	dom, dow := has(f.dom, int64(d)), has(f.dow, weekday)
	if f.union {
		return dom || dow
	}
	return dom && dow
}

// nextClock returns the first time of day at sec or later, in seconds.
func (f fields) nextClock(sec int64) (int64, bool) {
	h, m, s := sec/3600, sec/60%60, sec%60
	if has(f.hour, h) {
		if has(f.minute, m) {
			if s, ok := from(f.second, s); ok {
				return h*3600 + m*60 + s, true
			}
		}
		if m, ok := from(f.minute, m+1); ok {
			s, _ := from(f.second, 0)
			return h*3600 + m*60 + s, true
		}
	}
	h, ok := from(f.hour, h+1)
	m, _ = from(f.minute, 0)
	s, _ = from(f.second, 0)
	return h*3600 + m*60 + s, ok
}

func (f fields) count(from, to int64) int64 {
	if to <= from {
		return 0
	}
	d0, s0 := divmod(from, daySeconds)
	d1, s1 := divmod(to, daySeconds)
	days := int64(0)
	for d := d0; ; d++ {
		found, ok := f.nextDay(d, d1-1)
		if !ok {
			break
		}
		d = found
		days++
	}
	return days*f.before(daySeconds) + f.rank(d1, s1) - f.rank(d0, s0)
}

// everyWeek reports whether all weeks have the same ticks.
func (f fields) everyWeek() bool {
	return below(f.dom, 32) == 31 && below(f.month, 13) == 12 && !f.union
}

// rank returns how many ticks the day has before sec.
func (f fields) rank(day, sec int64) int64 {
	if found, ok := f.nextDay(day, day); !ok || found != day {
		return 0
	}
	return f.before(sec)
}

// before returns how many times of a matching day are earlier than sec.
func (f fields) before(sec int64) int64 {
	h, m, s := sec/3600, sec/60%60, sec%60
	seconds := below(f.second, 60)
	n := below(f.hour, h) * below(f.minute, 60) * seconds
	if !has(f.hour, h) {
		return n
	}
	n += below(f.minute, m) * seconds
	if has(f.minute, m) {
		n += below(f.second, s)
	}
	return n
}

// has reports whether mask has bit i.
func has(mask uint64, i int64) bool { return mask>>uint(i)&1 == 1 }

// from returns the first bit of mask at i or above.
func from(mask uint64, i int64) (int64, bool) {
	rest := mask >> uint(i)
	return i + int64(bits.TrailingZeros64(rest)), rest != 0
}

// top returns the highest bit of mask.
func top(mask uint64) int64 { return int64(bits.Len64(mask)) - 1 }

// below returns how many bits of mask are under i.
func below(mask uint64, i int64) int64 { return int64(bits.OnesCount64(mask & (1<<uint(i) - 1))) }

// divmod divides rounding down, so that the remainder is never negative.
func divmod(a, b int64) (quotient, remainder int64) {
	q, r := a/b, a%b
	if r < 0 {
		return q - 1, r + b
	}
	return q, r
}

// date returns the calendar date of a day counted from 1970-01-01.
func date(day int64) (int, time.Month, int) { return time.Unix(day*daySeconds, 0).UTC().Date() }

// dayOf returns the number of a date; months and days out of range carry over.
func dayOf(y int, m time.Month, d int) int64 {
	day, _ := divmod(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix(), daySeconds)
	return day
}
