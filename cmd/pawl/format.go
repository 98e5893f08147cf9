package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// thousands sets off the thousands of a count.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// humanise is a length of time for people: two units at most.
func humanise(d time.Duration) string {
	if d <= -time.Millisecond {
		return "-" + humanise(-d)
	}
	d = max(d, 0)
	n := int(d.Seconds())
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case n < 60:
		return fmt.Sprintf("%ds", n)
	case n < 3600:
		return fmt.Sprintf("%dm %02ds", n/60, n%60)
	case n < 86400:
		return fmt.Sprintf("%dh %02dm", n/3600, n%3600/60)
	}
	return fmt.Sprintf("%dd %dh", n/86400, n%86400/3600)
}

// at is a moment in UTC; none is a dash.
func at(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// ago is how long ago a moment was, or how far it is ahead.
func ago(now time.Time, t *time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return humanise(now.Sub(*t))
}

// or is s, or a dash in its place.
func or(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// clean keeps what others have written from steering the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
