package schedule

import (
	"strconv"
	"strings"
	"time"
)

// ParseKey returns the period that key names: the exact one, not moved by the offset.
// It checks the form and that such a day, hour, week or month exists in the zone; it
// does not ask whether the schedule ever owes it ([Schedule.Due] does). The error is a
// [*FieldError] that shows the form.
func (s Schedule) ParseKey(key string) (Period, error) {
	exact := s
	exact.offset = 0
	p, err := exact.parseKey(key)
	if err == nil {
		p.Offset = s.offset
	}
	return p, err
}

func (s Schedule) parseKey(key string) (Period, error) {
	switch s.Kind() {
	case Day:
		if t, ok := parseExact(dayLayout, key); ok {
			return s.days(t / daySeconds), nil
		}
		return badKey(key, "is not a day", "2026-09-16")
	case Week:
		if p, ok := s.parseWeek(key); ok {
			return p, nil
		}
		return badKey(key, "is not an ISO week", "2026-W38")
	case Month:
		if t, ok := parseExact(monthLayout, key); ok {
			y, m, _ := date(t / daySeconds)
			return s.month(y, m), nil
		}
		return badKey(key, "is not a month", "2026-09")
	case Hour:
		return s.parseHour(key)
	default:
		if t, ok := parseExact(tickLayout, key); ok {
			return s.ticks(t), nil
		}
		if t, ok := parseULID(key); ok && s.Manual() {
			return s.period(key, t, t), nil
		}
		if s.Manual() {
			return badKey(key, "is not the key of something triggered", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
		}
		return badKey(key, "is not a UTC instant", "2026-09-16T14:05:00Z")
	}
}

func badKey(key, problem, form string) (Period, error) {
	return Period{}, &FieldError{"key", key, problem, "write it like " + form}
}

// parseExact returns the Unix time of a key from 1970 on that prints as it was read.
func parseExact(layout, key string) (int64, bool) {
	t, err := time.Parse(layout, key)
	return t.Unix(), err == nil && t.Year() >= 1970 && t.Format(layout) == key
}

// parseWeek reads an ISO week; only some years have a W53.
func (s Schedule) parseWeek(key string) (Period, bool) {
	y, w, _ := strings.Cut(key, "-W")
	year, err := strconv.Atoi(y)
	n, err2 := strconv.Atoi(w)
	if err != nil || err2 != nil || year < 1970 || year > 9999 || n < 1 || n > 53 {
		return Period{}, false
	}
	// 4 January always lies in week 1.
	p := s.week(dayOf(year, time.January, 4) + 7*int64(n-1))
	return p, p.Key == key
}

// parseHour reads a local hour with its offset, which must be the zone's own then.
func (s Schedule) parseHour(key string) (Period, error) {
	t, err := time.Parse(hourLayout, key)
	if err != nil || t.Year() < 1970 {
		return badKey(key, "is not an hour with its offset", "2026-09-16T14+02:00")
	}
	// A change of clocks may cut the hour, at a quarter at most, so look inside it too.
	for past := int64(0); past < 3600; past += 900 {
		if p := s.hours(t.Unix() + past); p.Key == key {
			return p, nil
		}
	}
	return badKey(key, "is not an hour in "+s.Zone().String(), s.hours(t.Unix()).Key)
}

// parseULID returns the Unix time in a ULID, the key of a triggered manual job.
func parseULID(key string) (int64, bool) {
	if len(key) != 26 || key[0] > '7' {
		return 0, false
	}
	ms := int64(0)
	for i := range len(key) {
		digit := strings.IndexByte("0123456789ABCDEFGHJKMNPQRSTVWXYZ", key[i])
		if digit < 0 {
			return 0, false
		}
		if i < 10 {
			ms = ms<<5 | int64(digit)
		}
	}
	return ms / 1000, true
}

// Due returns when the schedule owes p: the tick whose period it is. False means never,
// as for a Saturday of a schedule that runs on weekdays.
func (s Schedule) Due(p Period) (time.Time, bool) {
	if s.Manual() {
		return time.Time{}, false
	}
	back := s
	back.offset = -s.offset
	own := back.Period(p.Start)
	t := s.Next(own.Start.Add(-time.Second))
	for range 3 { // a date that the clocks put back to can lie outside its bounds
		if t.IsZero() || s.Period(t).Key == p.Key {
			break
		}
		t = s.Next(t)
	}
	return t, !t.IsZero() && s.Period(t).Key == p.Key
}
