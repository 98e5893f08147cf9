package jobs

import (
	"context"
	"time"
)

const (
	// skewTold is how far the database's clock may be from ours before that is said. Nothing is decided by ours.
	skewTold = time.Second
	// maxSkew is how far it may be at all: beyond it nothing is planned, since tomorrow's periods would run today.
	maxSkew = 5 * time.Minute
)

// apart is how far the database's clock is from ours for certain: it was read somewhere between sent and sent + trip.
func apart(sent, theirs time.Time, trip time.Duration) time.Duration {
	switch off := theirs.Sub(sent.Add(trip / 2)); {
	case off > trip/2:
		return off - trip/2
	case off < -trip/2:
		return off + trip/2
	}
	return 0
}

// tellSkew says once that the clocks differ, and once that they don't any more.
func (r *Runner) tellSkew(ctx context.Context, by time.Duration) {
	switch wrong := r.skewed.Load(); {
	case !wrong && by.Abs() > skewTold:
		r.skewed.Store(true)
		r.log.WarnContext(ctx, "the database's clock and ours differ: all goes by the database's; set the clocks right", "database_ahead", by.Round(time.Millisecond).String())
	case wrong && by.Abs() < skewTold/2:
		r.skewed.Store(false)
		r.log.InfoContext(ctx, "the database's clock and ours agree again")
	}
}
