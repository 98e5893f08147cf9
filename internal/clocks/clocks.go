package clocks

import (
	"time"

	"pawl/internal/wall"
)

// Reading is one reading of the three clocks. Its zero value is no reading.
type Reading struct {
	At   time.Time     // used for its monotonic reading
	Wall time.Time     // the wall clock: no monotonic reading
	Boot time.Duration // goes on while the machine sleeps; 0 where there is none
}

// Now reads the clocks.
func Now() Reading {
	at := time.Now()
	return Reading{At: at, Wall: wall.Of(at), Boot: Boot()}
}

// Proven is the time since then that no setting of a clock can change.
func (r Reading) Proven(then Reading) time.Duration {
	return max(r.At.Sub(then.At), r.Boot-then.Boot)
}

// ByWall is the time since then by the wall clock.
func (r Reading) ByWall(then Reading) time.Duration { return r.Wall.Sub(then.Wall) }

// Ahead is by how much the wall clock has gone further than the others.
func (r Reading) Ahead(then Reading) time.Duration { return r.ByWall(then) - r.Proven(then) }
