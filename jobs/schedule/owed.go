package schedule

import (
	"fmt"
	"strings"
	"time"
)

// NeverOwed returns the weekdays whose dates no tick ever owes, Monday first; nil
// unless periods are days and the schedule chooses them by weekday alone. With the
// offset -1 a run from Tuesday to Saturday never owes a Saturday or a Sunday.
func (s Schedule) NeverOwed() []time.Weekday {
	var never []time.Weekday
	owed, ok := s.owed()
	for _, d := range fromMonday() {
		if ok && !owed[d] {
			never = append(never, d)
		}
	}
	return never
}

// OffsetNote says which weekdays an offset leaves without a run, "" if it does not:
// "with period_offset -1 the keys are Sun to Thu; Friday and Saturday are never owed".
func (s Schedule) OffsetNote() string {
	never := s.NeverOwed()
	if s.offset == 0 || len(never) == 0 {
		return ""
	}
	owed, _ := s.owed()
	names, are := make([]string, len(never)), "are"
	for i, d := range never {
		names[i] = d.String()
	}
	if len(never) == 1 {
		are = "is"
	}
	return fmt.Sprintf("with period_offset %d the keys are %s; %s %s never owed", s.offset, keyDays(owed), enumerate(names), are)
}

// owed returns the weekdays of the dates that are owed.
func (s Schedule) owed() (days [7]bool, ok bool) {
	f, cron := s.walls.(fields)
	if s.kind != Day || !cron || !f.everyWeek() {
		return days, false
	}
	for d := range int64(7) {
		_, key := divmod(d+int64(s.offset), 7)
		days[key] = has(f.dow, d)
	}
	return days, true
}

// keyDays prints weekdays: "Sun to Thu" for a stretch of three or more, else each.
func keyDays(days [7]bool) string {
	var short []string
	starts, start := 0, 0
	week := fromMonday()
	for i, d := range week {
		if !days[d] {
			continue
		}
		short = append(short, d.String()[:3])
		if !days[week[(i+6)%7]] {
			starts, start = starts+1, i
		}
	}
	if n := len(short); starts == 1 && n > 2 {
		return week[start].String()[:3] + " to " + week[(start+n-1)%7].String()[:3]
	}
	return enumerate(short)
}

func fromMonday() [7]time.Weekday {
	return [7]time.Weekday{
		time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday, time.Saturday, time.Sunday,
	}
}

// enumerate prints "a", "a and b" or "a, b and c".
func enumerate(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
