package ui

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"pawl/fence"
	"pawl/jobs/schedule"
	"pawl/lockrepo"
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

// clock is the time of day, with the day when it isn't today's. Both are in one zone.
func clock(now, t time.Time) string {
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
		"dur": dur, "gap": func(to, from time.Time) string { return gap(to.Sub(from)) }, "comma": comma, "comma64": func(n int) string { return comma(int64(n)) }, "counted": counted, "plural": plural,
		"details": facts, "named": named, "names": func(s string) string { return strings.ReplaceAll(s, "_", " ") },
		"seq": seq, "short": short, "pick": pick, "list": func(p *page, more bool, name, value string) cut { return cut{p, more, name, value} },
		"oneline": oneLine, "many": func(n int64) string { return counted(int(n)) },
		"since": func(now, t time.Time) string { return dur(now.Sub(t)) },
		"iso":   func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") },
		"full":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") },
		"ms":    func(t time.Time) int64 { return t.UnixMilli() },
	}
}

// pick is yes when it is so, else no.
func pick(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// moment is a time as it is seen from now, in the reader's zone.
type moment struct {
	Now, At time.Time
	Zone    *time.Location
}

// Clock is the time of day, with the day when it isn't today's.
func (m moment) Clock() string { return clock(m.Now.In(m.Zone), m.At.In(m.Zone)) }

// Ahead reports a time to come.
func (m moment) Ahead() bool { return m.At.After(m.Now) }

// At is a time as this page shows it.
func (p *page) At(t time.Time) moment { return moment{p.Now, t, p.Zone} }

// reason is why the database gave no answer, in the page's typography.
func reason(err error) string { return strings.ReplaceAll(lockrepo.Reason(err), "'", "’") }

// sentence makes one of an error: its package's name goes, a full stop comes.
func sentence(text string) string {
	for {
		prefix, rest, ok := strings.Cut(text, ": ")
		if !ok || strings.ContainsAny(prefix, " \"") {
			break
		}
		text = rest
	}
	first, size := utf8.DecodeRuneInString(text)
	return strings.TrimSuffix(string(unicode.ToUpper(first))+text[size:], ".") + "."
}

func zone(name string) (*time.Location, bool) {
	if name == "" || name == "UTC" {
		return time.UTC, true
	}
	z, err := schedule.Zone(name)
	return z, err == nil
}

// cut is where a list goes on: the query's part that names the next page.
type cut struct {
	Page        *page
	More        bool
	Name, Value string
}

// Left is the share of a lease that is left, in percent.
func (p *page) Left(expires time.Time, ttl time.Duration) float64 {
	return percent(expires.Sub(p.Now).Seconds(), ttl.Seconds())
}

// percent is a share for drawing, with one digit.
func percent(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	p := min(100, max(0, 100*part/whole))
	return float64(int(p*10)) / 10
}
