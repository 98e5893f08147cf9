//go:build !linux

package clocks

import "time"

// Boot is not known here: the monotonic and wall clocks remain.
func Boot() time.Duration { return 0 }
