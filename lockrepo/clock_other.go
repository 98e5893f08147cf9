//go:build !linux

package lockrepo

import "time"

// bootTime is not known here: the monotonic and wall clocks remain.
func bootTime() time.Duration { return 0 }
