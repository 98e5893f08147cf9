package lockrepo

import (
	"time"

	"pawl/internal/clocks"
)

// Instant is one reading of this machine's three clocks. Its zero value is
// no reading.
type Instant struct {
	at    time.Time     // used for its monotonic reading
	clock time.Time     // the wall clock: no monotonic reading
	boot  time.Duration // goes on while the machine sleeps; 0 where there is none
}

// Now reads the clocks. A lease is trusted from the reading that was taken
// before its request was sent.
func Now() Instant {
	r := clocks.Now()
	return Instant{at: r.At, clock: r.Wall, boot: r.Boot}
}

func (i Instant) reading() clocks.Reading {
	return clocks.Reading{At: i.at, Wall: i.clock, Boot: i.boot}
}

// ago is the reading that would have been taken d earlier.
func (i Instant) ago(d time.Duration) Instant {
	return Instant{at: i.at.Add(-d), clock: i.clock.Add(-d), boot: i.boot - d}
}

// proven is the time since then that no setting of a clock can change.
func (i Instant) proven(then Instant) time.Duration { return i.reading().Proven(then.reading()) }

// wall is the time since then by the wall clock.
func (i Instant) wall(then Instant) time.Duration { return i.reading().ByWall(then.reading()) }

// ahead is by how much the wall clock has gone further than the others.
func (i Instant) ahead(then Instant) time.Duration { return i.reading().Ahead(then.reading()) }
