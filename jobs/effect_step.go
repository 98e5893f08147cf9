package jobs

import (
	"time"
)

// The states of an effect. Done, failed and dropped are ends; a failed one has a next try.
const (
	EffectIntended  = "intended"  // the call may have been made
	EffectDone      = "done"      // it has happened
	EffectFailed    = "failed"    // it has not happened, and won't under this key
	EffectUncertain = "uncertain" // the call was made, and nobody knows
	EffectDropped   = "dropped"   // a person has given it up
)

// entry is the last try of an effect, as it stands. The zero value: there is none.
type entry struct {
	id          int64
	try         int
	key         string // for the receiver
	state       string
	request     string
	response    string
	reason      string
	operation   string
	sends       int // that may have left a process
	at          time.Time
	validUntil  *time.Time
	job, period string
	revision    int // in the period's key of what is sent
}

// step is what is to be done with an effect.
type step int

const (
	stepAnswer  step = iota // it is done: give its response
	stepFresh               // a first try, or the next one after a failure
	stepUnsent              // there is an intent, but nothing has been sent under its key
	stepAgain               // send it again, with the same key
	stepProbe               // ask the receiver, and send it again if that hasn't got it
	stepInquire             // ask the receiver; it is too late to send it
	stepPerson              // a person has to decide
	stepDropped
	stepChanged
	stepExpired
)

// next decides by what is recorded. operation is that of this call: it has surely not been sent yet.
func (c EffectConfig) next(e entry, request, operation string, now time.Time) step {
	open := e.state == EffectIntended || e.state == EffectUncertain
	switch {
	case open && e.sends == 0 && e.operation != operation:
		if !c.deadline(entry{at: now, validUntil: e.validUntil}).After(now) {
			return stepExpired
		}
		return stepUnsent
	case (open || e.state == EffectDone) && e.request != request:
		return stepChanged
	case e.state == EffectDone:
		return stepAnswer
	case e.state == EffectDropped:
		return stepDropped
	case !open && !c.deadline(entry{at: now, validUntil: e.validUntil}).After(now):
		return stepExpired
	case !open:
		return stepFresh
	case e.operation == operation:
		return stepAgain
	}
	late := c.KeyLifetime == NoKeys || !c.deadline(e).After(now)
	switch {
	case late && c.Probe != nil && c.OnUncertain != UncertainAsk:
		return stepInquire
	case late, e.state == EffectUncertain && c.OnUncertain == UncertainAsk:
		return stepPerson
	case c.OnUncertain == UncertainProbe:
		return stepProbe
	}
	return stepAgain
}

// deadline is until when an effect may be sent: while the receiver surely knows the key of who may have sent it before.
func (c EffectConfig) deadline(e entry) time.Time {
	until := c.ValidUntil
	if e.validUntil != nil {
		until = *e.validUntil
	}
	life := c.KeyLifetime
	if life == NoKeys {
		life = keyLifetime
	}
	if end := e.at.Add(life); until.IsZero() || end.Before(until) {
		return end
	}
	return until
}
