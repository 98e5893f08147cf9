package schedule

import (
	"fmt"
	"math/bits"
	"strconv"
	"time"
)

// Words says when a schedule is due, in English: "every day at 02:15", "Monday to Friday at 06:00", "every 15 minutes", "on
// day 1 of each month at 00:00". It is "" for what can't be read, and for what would take more words than its expression:
// show that then. Times are the zone's; zone, offset and what a change of clocks does are not in it.
func Words(spec Spec) string {
	s, err := Parse(spec)
	if err != nil {
		return ""
	}
	return s.Words()
}

// Words is the function of that name for a schedule that is parsed already.
func (s Schedule) Words() string {
	switch w := s.walls.(type) {
	case fields:
		return w.words()
	case once:
		day, _ := divmod(int64(w), daySeconds)
		return "once, on " + utcTime(day*daySeconds).Format(dayLayout) + " at " + clock(int64(w))
	}
	switch {
	case s.Manual():
		return "only when triggered"
	case s.shift != 0:
		return ""
	case s.every%3600 == 0:
		return everyN(s.every/3600, "hour")
	case s.every%60 == 0:
		return everyN(s.every/60, "minute")
	}
	return everyN(s.every, "second")
}

func everyN(n int64, unit string) string {
	if n == 1 {
		return "every " + unit
	}
	return fmt.Sprintf("every %d %ss", n, unit)
}

// most is how many things a sentence lists.
const most = 4

// words puts the times of a day and the days together.
func (f fields) words() string {
	times, at := f.timeWords()
	days, ok := f.dayWords()
	switch {
	case times == "" || !ok:
		return ""
	case at && days == "":
		return "every day " + times
	case at:
		return days + " " + times
	case days == "":
		return times
	}
	return times + ", " + days
}

// timeWords says the times of a day; at: they are few and named one by one.
func (f fields) timeWords() (text string, at bool) {
	minutes, hours := values(f.minute, 60), values(f.hour, 24)
	if len(values(f.second, 60)) > 1 {
		return f.secondWords(), false
	}
	if f.second != 1 {
		return "", false
	}
	if len(minutes)*len(hours) <= most {
		var clocks []string
		for _, h := range hours {
			for _, m := range minutes {
				clocks = append(clocks, clockWords(h, m))
			}
		}
		return "at " + enumerate(clocks), true
	}
	first, last := hours[0], hours[len(hours)-1]
	step, hourStep := stepOf(minutes, 60), stepOf(hours, 24)
	switch unbroken := last-first == len(hours)-1; {
	case len(minutes) == 1 && len(hours) == 24 && minutes[0] == 0:
		return "every hour", false
	case len(minutes) == 1 && len(hours) == 24:
		return fmt.Sprintf("every hour at minute %d", minutes[0]), false
	case len(minutes) == 1 && unbroken:
		return fmt.Sprintf("every hour from %s to %s", clockWords(first, minutes[0]), clockWords(last, minutes[0])), false
	case len(minutes) == 1 && hourStep > 0 && minutes[0] == 0:
		return everyN(int64(hourStep), "hour"), false
	case len(minutes) == 1 && hourStep > 0:
		return fmt.Sprintf("every %d hours at minute %d", hourStep, minutes[0]), false
	case step > 0 && len(hours) == 24:
		return everyN(int64(step), "minute"), false
	case step > 0 && unbroken:
		return fmt.Sprintf("%s from %s to %s", everyN(int64(step), "minute"), clockWords(first, 0), clockWords(last, 60-step)), false
	}
	return "", false
}

// secondWords says what is due more than once a minute.
func (f fields) secondWords() string {
	if step := stepOf(values(f.second, 60), 60); step > 0 && below(f.minute, 60) == 60 && below(f.hour, 24) == 24 {
		return everyN(int64(step), "second")
	}
	return ""
}

// dayWords says the days; "" are all of them, and false means that there are no words.
func (f fields) dayWords() (text string, ok bool) {
	dates, days, months := values(f.dom, 32), values(f.dow, 7), values(f.month, 13)
	allDates, allDays, in := len(dates) == 31, len(days) == 7, ""
	if len(months) < 12 {
		var names []string
		for _, m := range months {
			names = append(names, time.Month(m).String())
		}
		in = enumerate(names)
	}
	switch {
	case f.union || !allDates && (!allDays || len(dates) > most) || in != "" && len(months) > most:
		return "", false
	case !allDates:
		return "on " + dateWords(dates) + " of " + orEach(in), true
	case allDays && in == "":
		return "", true
	case allDays:
		return "every day in " + in, true
	case in != "":
		return dayNames(f.dow) + " in " + in, true
	}
	return dayNames(f.dow), true
}

func orEach(months string) string {
	if months == "" {
		return "each month"
	}
	return months
}

func dateWords(dates []int) string {
	if len(dates) == 1 {
		return "day " + strconv.Itoa(dates[0])
	}
	var text []string
	for _, d := range dates {
		text = append(text, strconv.Itoa(d))
	}
	return "days " + enumerate(text)
}

// dayNames prints weekdays: "every Monday", "Monday to Friday" for a stretch of three or more, else each.
func dayNames(dow uint64) string {
	var names []string
	week, starts, start := fromMonday(), 0, 0
	for i, d := range week {
		if !has(dow, int64(d)) {
			continue
		}
		names = append(names, d.String())
		if !has(dow, int64(week[(i+6)%7])) {
			starts, start = starts+1, i
		}
	}
	switch n := len(names); {
	case n == 1:
		return "every " + names[0]
	case starts == 1 && n > 2:
		return week[start].String() + " to " + week[(start+n-1)%7].String()
	}
	return enumerate(names)
}

// values are the bits of a field, the lowest first.
func values(mask uint64, size int) []int {
	all := make([]int, 0, bits.OnesCount64(mask))
	for i := range size {
		if has(mask, int64(i)) {
			all = append(all, i)
		}
	}
	return all
}

// stepOf is the step of values that divide the field evenly from zero on; zero if they don't.
func stepOf(all []int, size int) int {
	if len(all) < 2 || size%len(all) != 0 {
		return 0
	}
	step := size / len(all)
	for i, v := range all {
		if v != i*step {
			return 0
		}
	}
	return step
}

func clockWords(hour, minute int) string { return fmt.Sprintf("%02d:%02d", hour, minute) }
