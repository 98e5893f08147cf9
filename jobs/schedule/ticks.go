package schedule

import (
	"math"
	"time"
)

// The reasons for which a tick is not owed.
const (
	ReasonCatchUp = "catch_up" // the policy doesn't catch up with it
	ReasonWindow  = "window"   // it is older than the catch-up window
	ReasonTooLate = "too_late" // it is planned later than it may start
)

// passLimit bounds the ticks of a pass that are not owed and not folded.
const passLimit = 1000

// Tick is one instant of a schedule, or an unbroken stretch of instants that are not
// owed for one reason.
type Tick struct {
	At     time.Time // when it is due, UTC; the first one of a stretch
	To     time.Time // the last one of a stretch, else At
	Count  int       // how many ticks the stretch has, else 1
	Period Period    // what At owes
	Reason string    // "" is owed; else one of the reasons above
}

// Ticks returns every tick in (after, now], oldest first, owed or with the reason why
// not, and the watermark: the instant up to which they were listed, where the next
// pass goes on. The watermark is now, unless p.Max owed ticks ended the pass earlier;
// it is never before after. Zero fields of p mean the defaults.
//
// Ticks of hours and single ticks that are not owed come folded into stretches, so
// that years of them cost little; those of days and longer come one by one.
func (s Schedule) Ticks(after, now time.Time, p Policy) (ticks []Tick, watermark time.Time) {
	if !now.After(after) || s.Manual() {
		return nil, later(after, now)
	}
	l := &list{s: s, next: after.Unix() + 1, now: now.Unix()}
	p = s.filled(p)
	switch p.CatchUp {
	case CatchUpAll:
		l.drop(oldest(now, p.Window), ReasonWindow)
	default:
		l.dropOlder(p, now)
	}
	if p.StartWithin > 0 {
		l.drop(oldest(now, p.StartWithin), ReasonTooLate)
	}
	l.owe(p.Max)
	if l.full {
		return l.ticks, time.Unix(l.next-1, 0).UTC()
	}
	return l.ticks, now
}

// oldest returns the first whole second that is at most age before now.
func oldest(now time.Time, age time.Duration) int64 {
	return now.Add(-age).Add(time.Second - 1).Unix()
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// list collects the ticks of one pass. Ticks before next are in it.
type list struct {
	s         Schedule
	next, now int64
	ticks     []Tick
	full      bool // the pass ends before now
}

// dropOlder drops all but the newest tick, and that one too if it is too old.
func (l *list) dropOlder(p Policy, now time.Time) {
	newest, ok := l.s.prev(l.now + 1)
	if !ok || newest < l.next {
		return
	}
	age := now.Sub(time.Unix(newest, 0))
	if p.CatchUp == CatchUpNone && age > onTime {
		newest++
	}
	l.drop(newest, ReasonCatchUp)
	if age > p.Window {
		l.drop(newest+1, ReasonWindow)
	}
}

// drop lists the ticks before edge as not owed.
func (l *list) drop(edge int64, reason string) {
	edge = min(edge, l.now+1)
	if l.s.Kind().Short() {
		l.fold(edge, reason)
		return
	}
	l.each(edge, passLimit, reason)
}

// fold lists the ticks before edge as one stretch.
func (l *list) fold(edge int64, reason string) {
	if l.full || l.next >= edge {
		return
	}
	if first, ok := l.s.next(l.next); ok && first < edge {
		last, _ := l.s.prev(edge)
		n := min(l.s.count(first, edge), math.MaxInt32)
		l.add(first, last, int(n), reason)
	}
	l.next = edge
}

// owe lists the ticks up to now as owed, at most limit of them.
func (l *list) owe(limit int) { l.each(l.now+1, limit, "") }

// each lists the ticks before edge one by one, at most limit of them.
func (l *list) each(edge int64, limit int, reason string) {
	for n := 0; !l.full; n++ {
		t, ok := l.s.next(l.next)
		switch {
		case !ok || t >= edge:
			l.next = max(l.next, edge)
			return
		case n == limit:
			l.full = true
		default:
			l.add(t, t, 1, reason)
			l.next = t + 1
		}
	}
}

func (l *list) add(first, last int64, n int, reason string) {
	at := time.Unix(first, 0).UTC()
	l.ticks = append(l.ticks, Tick{at, time.Unix(last, 0).UTC(), n, l.s.Period(at), reason})
}
