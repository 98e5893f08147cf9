package schedule

import "time"

// LongestGap returns the longest time between two neighbouring ticks by the wall clock:
// a catch-up window that is shorter may lose one while nobody plans. Changes of clocks
// can lengthen it by their own size. It is 0 where there are no two ticks.
func (s Schedule) LongestGap() time.Duration {
	if s.gap > 0 {
		return s.gap
	}
	return s.longestGap()
}

func (s Schedule) longestGap() time.Duration {
	f, cron := s.walls.(fields)
	if !cron {
		return time.Duration(s.every) * time.Second
	}
	first, last := f.clocks()
	between := daySeconds + first - last // from one day's last tick to the next day's first
	day := dayOf(2000, 1, 1)
	end := day + 2*horizon/daySeconds
	if f.everyWeek() {
		end = day + 15
	}
	before, days := int64(-1), int64(0)
	for d := day; ; d++ {
		found, ok := f.nextDay(d, end)
		if !ok {
			break
		}
		if before >= 0 {
			days = max(days, found-before)
		}
		before, d = found, found
	}
	if days == 0 {
		return 0
	}
	return time.Duration(max((days-1)*daySeconds+between, f.longestInDay())) * time.Second
}

// clocks returns the first and the last time of a matching day, in seconds.
func (f fields) clocks() (first, last int64) {
	first, _ = f.nextClock(0)
	return first, top(f.hour)*3600 + top(f.minute)*60 + top(f.second)
}

// longestInDay returns the longest distance of two ticks of one day, 0 with only one.
func (f fields) longestInDay() int64 {
	longest := int64(0)
	at, _ := f.nextClock(0)
	for {
		next, ok := f.nextClock(at + 1)
		if !ok {
			return longest
		}
		longest, at = max(longest, next-at), next
	}
}
