package web

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"pawl/fence"
)

// nb keeps a number with its unit on one line.
const nb = "\u00a0"

// dur is a length for people. Less than nothing, as after a step of a clock, is nothing.
func dur(d time.Duration) string {
	s := max(0, d.Seconds())
	n := int(s)
	switch {
	case s < 0.05:
		return gap(d)
	case s < 9.95:
		return fmt.Sprintf("%.1fs", s)
	case s < 60:
		return fmt.Sprintf("%ds", max(n, 10))
	case n < 3600:
		return fmt.Sprintf("%dm"+nb+"%02ds", n/60, n%60)
	case n < 86400:
		return fmt.Sprintf("%dh"+nb+"%02dm", n/3600, n%3600/60)
	default:
		return fmt.Sprintf("%dd"+nb+"%dh", n/86400, n%86400/3600)
	}
}

// gap is a length that may be short: below a second it is in milliseconds.
func gap(d time.Duration) string {
	if 0 < d && d < time.Millisecond {
		return "<1ms"
	}
	if d < time.Second {
		return strconv.FormatInt(max(0, d.Milliseconds()), 10) + "ms"
	}
	return dur(d)
}

// clock is the time of day, with the day when it isn't today's.
func clock(now, t time.Time) string {
	now, t = now.UTC(), t.UTC()
	switch {
	case now.Format(time.DateOnly) == t.Format(time.DateOnly):
		return t.Format("15:04:05")
	case now.Year() == t.Year():
		return t.Format("2" + nb + "Jan" + " 15:04:05")
	default:
		return t.Format("2" + nb + "Jan" + nb + "2006" + " 15:04:05")
	}
}

// comma sets off the thousands of a count.
func comma(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// counted is a count that is only known to be at least 10,000 when it is more.
func counted(n int) string {
	if n > 10_000 {
		return "10,000+"
	}
	return comma(int64(n))
}

// plural is one for one and many for every other number.
func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// short says whether a key is short enough to stay on one line, as a ULID is.
func short(key string) bool { return len(key) <= 40 }

// seq is a token's number, which may only break where its last digits are set off. Digits need no escaping.
func seq(n int64) template.HTML {
	return template.HTML(strings.Replace(fence.FormatSeq(n), "·", "·<wbr>", 1))
}

func functions() template.FuncMap {
	return template.FuncMap{
		"dur": dur, "clock": clock, "comma": comma, "counted": counted, "plural": plural, "seq": seq, "short": short,
		"since": func(now, t time.Time) string { return dur(now.Sub(t)) },
		"gap":   func(to, from time.Time) string { return gap(to.Sub(from)) },
		"iso":   func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") },
		"full":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") },
		"ms":    func(t time.Time) int64 { return t.UnixMilli() },
		"when":  func(now, t time.Time) moment { return moment{Now: now, At: t} },
		"gone":  func(why string, alone bool) absence { return absence{Why: why, Alone: alone} },
	}
}

// absence is a part that was not answered, and whether no part was.
type absence struct {
	Why   string
	Alone bool
}

// moment is a time as it is seen from now.
type moment struct{ Now, At time.Time }
