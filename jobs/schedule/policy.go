package schedule

import (
	"cmp"
	"strconv"
	"time"
)

// CatchUp says which ticks that passed while nobody planned are still owed.
type CatchUp string

// The catch-up policies.
const (
	CatchUpNone   CatchUp = "none"   // only the newest tick, and only up to 10 minutes late
	CatchUpLatest CatchUp = "latest" // only the newest tick
	CatchUpAll    CatchUp = "all"    // every tick, oldest first
)

// onTime is how late a tick may be planned and still be no catch-up. It covers a
// restart and a deploy; it is also when a job counts as late.
const onTime = 10 * time.Minute

const (
	week       = 7 * 24 * time.Hour
	defaultMax = 50
	mostMax    = 10_000
)

// Policy bounds what is owed for the past. Zero fields mean the schedule's defaults.
type Policy struct {
	// CatchUp is all for periods of a day and longer, latest for shorter ones.
	CatchUp CatchUp
	// Window is how old a tick may be, by its nominal time, and still be owed. The
	// default is 24 h for hours and ticks and 7 d for longer periods; where the ticks
	// lie 7 d or more apart, it is their longest distance plus 7 d.
	Window time.Duration
	// StartWithin is how late a tick may be planned and still be owed, for work that is
	// wrong when late; more than the jitter. 0 is no limit of its own.
	StartWithin time.Duration
	// Max is how many owed ticks one pass returns, 1 to 10000; 50 by default.
	Max int
}

// Policy returns p with its defaults filled in. The error is a [*FieldError].
func (s Schedule) Policy(p Policy) (Policy, error) {
	switch p.CatchUp {
	case "", CatchUpNone, CatchUpLatest, CatchUpAll:
	default:
		return Policy{}, &FieldError{"catch_up", string(p.CatchUp), "is not a choice", "write one of none, latest, all"}
	}
	if p.Window < 0 {
		return Policy{}, &FieldError{"catch_up_window", p.Window.String(), "is negative", "write a duration like 24h or 7d"}
	}
	if p.Max < 0 || p.Max > mostMax {
		return Policy{}, &FieldError{"catch_up_max", strconv.Itoa(p.Max), "is out of range", "write a number from 1 to 10000"}
	}
	if err := s.checkStartWithin(p.StartWithin); err != nil {
		return Policy{}, err
	}
	return s.filled(p), nil
}

// checkStartWithin refuses a limit that the schedule's own jitter would break.
func (s Schedule) checkStartWithin(d time.Duration) error {
	switch {
	case d < 0:
		return &FieldError{"start_within", d.String(), "is negative", "write a duration like 5m, or leave it out"}
	case d > 0 && d <= s.jitter:
		return &FieldError{
			"start_within", d.String(), "is not more than the jitter of " + s.jitter.String() + ", so that starts on time would be too late",
			"write a longer one, or a shorter jitter",
		}
	}
	return nil
}

func (s Schedule) filled(p Policy) Policy {
	catchUp, window := CatchUpAll, week
	if s.Kind().Short() {
		catchUp, window = CatchUpLatest, 24*time.Hour
	} else if s.gap >= week {
		window = s.gap + week
	}
	return Policy{
		CatchUp:     cmp.Or(p.CatchUp, catchUp),
		Window:      cmp.Or(p.Window, window),
		StartWithin: p.StartWithin,
		Max:         cmp.Or(p.Max, defaultMax),
	}
}
