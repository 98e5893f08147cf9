package guardian

import (
	"time"

	"pawl/internal/clocks"
)

// Clock is what deadlines are told by: CLOCK_BOOTTIME on Linux, and elsewhere
// the wall clock, since both processes must read the same one.
func Clock() time.Duration {
	if boot := clocks.Boot(); boot != 0 {
		return boot
	}
	return time.Duration(time.Now().UnixNano())
}
