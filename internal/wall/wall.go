// Package wall is this process's wall clock, which a test of wrong clocks can
// move.
//
// It promises that it is the machine's clock unless [Shift] was called, and
// that only tests call it: there is no other way to give one worker process a
// clock that is wrong. It is asked only where the wall clock is distrusted;
// what counts durations counts them by clocks that nobody sets.
package wall

import (
	"sync/atomic"
	"time"
)

var offset atomic.Int64 // a process has one clock

// Shift moves the clock by d, forward or backward.
func Shift(d time.Duration) { offset.Add(int64(d)) }

// Now is the time, without a monotonic reading.
func Now() time.Time { return Of(time.Now()) }

// Of is what the clock shows at t.
func Of(t time.Time) time.Time { return t.Round(0).Add(time.Duration(offset.Load())) }
