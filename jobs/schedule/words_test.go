package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		"15 2 * * *":             "every day at 02:15",
		"@daily":                 "every day at 00:00",
		"0 6 * * 1-5":            "Monday to Friday at 06:00",
		"15 2 * * 2-6":           "Tuesday to Saturday at 02:15",
		"0 6 * * MON":            "every Monday at 06:00",
		"@weekly":                "every Sunday at 00:00",
		"0 6 * * 6,0,1":          "Saturday to Monday at 06:00",
		"0 6 * * 1,3":            "Monday and Wednesday at 06:00",
		"0 6,18 * * *":           "every day at 06:00 and 18:00",
		"*/15 * * * *":           "every 15 minutes",
		"0/15 * * * *":           "every 15 minutes",
		"* * * * *":              "every minute",
		"@every 15m":             "every 15 minutes",
		"@every 90s":             "every 90 seconds",
		"@every 1d":              "every 24 hours",
		"@every 1h":              "every hour",
		"0 * * * *":              "every hour",
		"10 * * * *":             "every hour at minute 10",
		"0 */2 * * *":            "every 2 hours",
		"10 */2 * * *":           "every 2 hours at minute 10",
		"0 9-17 * * 1-5":         "every hour from 09:00 to 17:00, Monday to Friday",
		"*/20 9-17 * * 1-5":      "every 20 minutes from 09:00 to 17:40, Monday to Friday",
		"0 0 1 * *":              "on day 1 of each month at 00:00",
		"0 0 1,15 * *":           "on days 1 and 15 of each month at 00:00",
		"@yearly":                "on day 1 of January at 00:00",
		"0 0 1 1,4,7,10 *":       "on day 1 of January, April, July and October at 00:00",
		"0 3 * 12 *":             "every day in December at 03:00",
		"0 3 * 12 5":             "every Friday in December at 03:00",
		"@manual":                "only when triggered",
		"@at 2026-09-16T02:15":   "once, on 2026-09-16 at 02:15",
		"0 0 13 * 5":             "", // both days
		"*/7 * * * *":            "", // not even
		"0 1,3,7,13,17,23 * * *": "", // too many
		"0 0 1-10 * *":           "",
		"0 0 30 2 *":             "", // never
		"nonsense":               "",
	} {
		if got := schedule.Words(schedule.Spec{Expr: expr, DayMatch: "and"}); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
	if got := schedule.Words(schedule.Spec{Expr: "*/10 * * * * *", Seconds: true}); got != "every 10 seconds" {
		t.Errorf("with seconds: %q", got)
	}
	if got := schedule.Words(schedule.Spec{Expr: "@every 10m", EveryOffset: time.Minute}); got != "" {
		t.Errorf("moved: %q", got)
	}
}

// meaning is what a sentence says of a wall time, read from the sentence alone.
type meaning struct {
	every    time.Duration // elapsed, from midnight
	from, to int           // minutes of the day
	minute   int           // of the hour; -1: whatever every says
	clocks   []int         // minutes of the day; nil: every
	days     []time.Weekday
	dates    []int
	months   []time.Month
}

// listed splits "a, b and c".
func listed(text string) []string {
	return strings.Split(strings.ReplaceAll(text, " and ", ", "), ", ")
}

func minutes(clock string) int {
	h, m, _ := strings.Cut(clock, ":")
	a, _ := strconv.Atoi(h)
	b, _ := strconv.Atoi(m)
	return a*60 + b
}

func weekday(name string) time.Weekday {
	for d := range time.Weekday(7) {
		if d.String() == name {
			return d
		}
	}
	return -1
}

func monthsOf(text string) (months []time.Month) {
	for _, name := range listed(text) {
		for m := time.January; m <= time.December; m++ {
			if m.String() == name {
				months = append(months, m)
			}
		}
	}
	return months
}

var (
	atClocks  = regexp.MustCompile(`^(.*) at (\d\d:\d\d(?:(?:, | and )\d\d:\d\d)*)$`)
	interval  = regexp.MustCompile(`^every (?:(\d+) )?(hour|minute|second)s?(?: at minute (\d+))?(?: from (\d\d:\d\d) to (\d\d:\d\d))?(?:, (.*))?$`)
	ofMonth   = regexp.MustCompile(`^on days? ([\d, and]+) of (.*)$`)
	inMonths  = regexp.MustCompile(`^(.*) in (.*)$`)
	fromToDay = regexp.MustCompile(`^(\w+) to (\w+)$`)
)

func understand(t *testing.T, words string) (m meaning) {
	t.Helper()
	m.to, m.minute = 24*60, -1
	days := ""
	switch at, each := atClocks.FindStringSubmatch(words), interval.FindStringSubmatch(words); {
	case at != nil:
		for _, c := range listed(at[2]) {
			m.clocks = append(m.clocks, minutes(c))
		}
		days = at[1]
	case each != nil:
		n, _ := strconv.Atoi(each[1])
		m.every = time.Duration(max(n, 1)) * map[string]time.Duration{"hour": time.Hour, "minute": time.Minute, "second": time.Second}[each[2]]
		if each[3] != "" {
			m.minute, _ = strconv.Atoi(each[3])
		}
		if each[4] != "" {
			m.from, m.to = minutes(each[4]), minutes(each[5])
		}
		days = each[6]
	default:
		t.Fatalf("%q is not a sentence of the grammar", words)
	}
	if on := ofMonth.FindStringSubmatch(days); on != nil {
		for _, d := range listed(on[1]) {
			n, _ := strconv.Atoi(d)
			m.dates = append(m.dates, n)
		}
		m.months = monthsOf(on[2])
		return m
	}
	if in := inMonths.FindStringSubmatch(days); in != nil {
		days, m.months = in[1], monthsOf(in[2])
	}
	if span := fromToDay.FindStringSubmatch(days); span != nil {
		for d := weekday(span[1]); ; d = (d + 1) % 7 {
			m.days = append(m.days, d)
			if d == weekday(span[2]) {
				break
			}
		}
	} else if days = strings.TrimPrefix(days, "every "); days != "" && days != "day" {
		for _, d := range listed(days) {
			m.days = append(m.days, weekday(d))
		}
	}
	return m
}

// due reports whether the sentence names the wall time.
func (m meaning) due(at time.Time) bool {
	if len(m.days) > 0 && !slices.Contains(m.days, at.Weekday()) || len(m.dates) > 0 && !slices.Contains(m.dates, at.Day()) ||
		len(m.months) > 0 && !slices.Contains(m.months, at.Month()) {
		return false
	}
	minute := at.Hour()*60 + at.Minute()
	if m.clocks != nil {
		return at.Second() == 0 && slices.Contains(m.clocks, minute)
	}
	if minute < m.from || minute > m.to {
		return false
	}
	past := time.Duration(minute-m.from)*time.Minute + time.Duration(at.Second())*time.Second
	if m.minute >= 0 {
		past -= time.Duration(m.minute) * time.Minute
	}
	return past >= 0 && past%m.every == 0
}

// The sentence, read by itself, names the same next five ticks as the schedule has: on dates and at times of a fixed grammar,
// in a zone without changes of clocks.
func TestWordsSayTheNextTicks(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	number := func(from, to int) string { return strconv.Itoa(from + r.IntN(to-from+1)) }
	said := map[string]bool{}
	for range 700 {
		minute := pick("0", number(0, 59), "*/"+pick("5", "10", "15", "20", "30"), "*", number(0, 29)+","+number(30, 59))
		hour := pick("*", number(0, 23), number(0, 9)+"-"+number(10, 23), "*/"+pick("2", "3", "4", "6", "8", "12"), number(0, 11)+","+number(12, 23))
		date, month, day := "*", pick("*", "*", "*", number(1, 12), number(1, 6)+","+number(7, 12)), "*"
		switch r.IntN(3) {
		case 0:
			date = pick(number(1, 28), number(1, 14)+","+number(15, 28))
		case 1:
			day = pick("1-5", number(0, 6), number(0, 2)+"-"+number(3, 6), "6,0", "1,3,5", "6,0,1")
		}
		spec := schedule.Spec{Expr: fmt.Sprintf("%s %s %s %s %s", minute, hour, date, month, day), Zone: "Asia/Kolkata", Period: schedule.PerTick}
		agree(t, r, spec, time.Minute, said)
	}
	for _, every := range []string{"1m", "15m", "1h", "6h", "24h", "90s", "10s"} {
		agree(t, r, schedule.Spec{Expr: "@every " + every}, time.Second, said)
	}
	agree(t, r, schedule.Spec{Expr: "*/20 * * * * *", Seconds: true}, time.Second, said)
	if len(said) < 300 {
		t.Errorf("only %d sentences were looked at", len(said))
	}
}

// agree compares the next five ticks, or those of some days if they are far apart.
func agree(t *testing.T, r *rand.Rand, spec schedule.Spec, step time.Duration, said map[string]bool) {
	t.Helper()
	words := schedule.Words(spec)
	if words == "" || said[words] {
		return
	}
	said[words] = true
	m, s := understand(t, words), parse(t, spec)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, s.Zone()).Add(time.Duration(r.IntN(500*24*60)) * time.Minute)
	next, found := s.Next(at), 0
	for days := 0; found < 5 && days < 100; {
		at = at.Add(step)
		if at.Hour() == 0 && at.Minute() == 0 && at.Second() == 0 {
			days++
		}
		if due, tick := m.due(at), next.Equal(at); due != tick {
			t.Errorf("%s, %q: at %s the words say %v, the schedule %v", spec.Expr, words, at, due, tick)
			return
		} else if tick {
			next = s.Next(at)
			found++
		}
	}
}
