package lockrepo

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Go's monotonic clock stands still while the machine sleeps; this one doesn't, and it must be the one that is read.
func TestTheClockThatGoesOnWhileTheMachineSleepsIsRead(t *testing.T) {
	t.Parallel()
	read := func() int64 {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			t.Fatal(err)
		}
		return ts.Nano()
	}
	before := read()
	got := Now().boot.Nanoseconds()
	if after := read(); got < before || got > after {
		t.Errorf("%d is not between %d and %d", got, before, after)
	}
}
