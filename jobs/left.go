package jobs

import (
	"errors"
	"time"

	"pawl/lockrepo"
)

// TTL is how long the run's lease lives without a heartbeat.
func (r *Run) TTL() time.Duration { return r.job.TTL }

// Location is the job's time zone.
func (r *Run) Location() *time.Location {
	s, err := r.job.definition("").parse()
	if err != nil {
		return time.UTC
	}
	return s.Zone()
}

// Left is how long the run may go on if no renewal follows, by this machine's clocks: until the lease can't be believed
// in any more and, once the context has ended, no longer than the runner waits for the function. 0 or less: not any
// more. What the function has started elsewhere must be gone by then.
func (r *Run) Left() time.Duration {
	if err := r.kept.Check(); err != nil && !errors.Is(err, lockrepo.ErrSuspect) {
		return 0
	}
	left := r.kept.Lease().Left()
	if by := r.until.Load(); by != nil {
		left = min(left, time.Until(*by))
	}
	return left
}

// Draining is closed when the process begins to shut down: the context lives on for the runner's grace, but what takes
// longer may stop now. A function that returns an error which is [ErrDrained] then has cost no attempt.
func (r *Run) Draining() <-chan struct{} { return r.runner.gone }

// Stopping says that the function has noticed the end of its context and needs its time, at most [Run.Left]: its slot
// doesn't count as stuck before that.
func (r *Run) Stopping() { r.stopping.Store(true) }

// endsIn says when the runner will not wait any longer.
func (r *Run) endsIn(d time.Duration) time.Duration {
	by := time.Now().Add(d)
	r.until.Store(&by)
	return d
}
