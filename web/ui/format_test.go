package ui

import (
	"testing"
	"time"
)

func TestLengthsAreWrittenForPeople(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Minute: "0ms", 0: "0ms", 300 * time.Microsecond: "<1ms", 12 * time.Millisecond: "12ms", 49900 * time.Microsecond: "49ms",
		50 * time.Millisecond: "0.1s", 3300 * time.Millisecond: "3.3s", 9960 * time.Millisecond: "10s", 59400 * time.Millisecond: "59s",
		59600 * time.Millisecond: "59s", 134 * time.Second: "2m\u00a014s", 5*time.Hour + 19*time.Minute: "5h\u00a019m", 6*day + 11*time.Hour: "6d\u00a011h",
	} {
		if got := dur(d); got != want {
			t.Errorf("dur(%v) = %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{-time.Second: "0ms", 21 * time.Millisecond: "21ms", 38 * time.Second: "38s"} {
		if got := gap(d); got != want {
			t.Errorf("gap(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestClockNamesTheDayWhenItIsAnother(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 0, 30, 0, 0, time.UTC)
	for at, want := range map[time.Time]string{
		now.Add(-time.Minute):                "00:29:00",
		now.Add(-time.Hour):                  "28\u00a0Nov 23:30:00",
		now.AddDate(-1, 0, 0):                "29\u00a0Nov\u00a02025 00:30:00",
		now.In(time.FixedZone("IST", 19800)): "00:30:00", // whatever zone a time comes in
	} {
		if got := (moment{now, at, time.UTC}).Clock(); got != want {
			t.Errorf("clock(%v) = %q, want %q", at, got, want)
		}
	}
}

func TestCountsAreSetOff(t *testing.T) {
	t.Parallel()
	if comma(0) != "0" || comma(999) != "999" || comma(1234567) != "1,234,567" || counted(10_001) != "10,000+" || counted(10_000) != "10,000" {
		t.Errorf("%s %s %s %s %s", comma(0), comma(999), comma(1234567), counted(10_001), counted(10_000))
	}
}
