package schedule

import (
	"strconv"
	"strings"
	"time"
)

// readEvery reads the interval of "@every D" and its offset, both in seconds.
func readEvery(spec Spec, text string) (every, shift int64, err error) {
	d, ok := parseDuration(text)
	switch {
	case !ok:
		return 0, 0, badExpr(spec, "has no duration that can be read", `write whole seconds, like "@every 90s", "@every 15m" or "@every 1d"`)
	case d <= 0:
		return 0, 0, badExpr(spec, "is not an interval", `write 1s or more, like "@every 15m"`)
	case d%time.Second != 0:
		return 0, 0, badExpr(spec, "is not in whole seconds", `write 1s or more, like "@every 2s"`)
	}
	if o := spec.EveryOffset; o < 0 || o >= d || o%time.Second != 0 {
		return 0, 0, &FieldError{
			"offset", o.String(), "doesn't fit " + strconv.Quote(spec.Expr),
			"write whole seconds from 0s to less than the interval",
		}
	}
	return int64(d / time.Second), int64(spec.EveryOffset / time.Second), nil
}

// parseDuration reads Go's durations, which may begin with days of 24 hours: "1d12h".
func parseDuration(text string) (time.Duration, bool) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		d, err := time.ParseDuration(text)
		return d, err == nil
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, false
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return d, true
	}
	more, err := time.ParseDuration(rest)
	return d + more, err == nil && more >= 0 && d+more >= d
}

// readAt reads the wall time of "@at".
func readAt(spec Spec, text string) (walls, error) {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"} {
		t, err := time.Parse(layout, text)
		if err == nil && t.Nanosecond() == 0 && t.Year() >= 1970 {
			return once(t.Unix()), nil
		}
	}
	return nil, badExpr(spec, "is not a local time", `write "@at 2026-09-16T02:15" and the zone in the timezone field`)
}

// once is the single wall time of "@at".
type once int64

func (o once) next(w, limit int64) (int64, bool) {
	return int64(o), w <= int64(o) && int64(o) <= limit
}

func (o once) count(from, to int64) int64 {
	if from <= int64(o) && int64(o) < to {
		return 1
	}
	return 0
}
