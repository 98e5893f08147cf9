package ui

import (
	"math"
	"time"

	"pawl/lockrepo"
)

// timeline is leases over a time, a lane for each lock: what a page hands to [page.Lanes]. It is read with the page's other
// data; where things stand in the picture is worked out when the page is written.
type timeline struct {
	Panel[lockrepo.Span]               // by lock, then token
	From                 time.Time     // zero: Last before To
	To                   time.Time     // zero: up to now
	Last                 time.Duration // how long it is, without From
	Cut                  []string      // locks that have earlier leases in this time, which are left out
	Minute               int64         // the minute in which it was read: an idle picture moves on once a minute
}

// lanes is a timeline as it is drawn. Every place and width is in percent of it.
type lanes struct {
	Page  *page
	Rows  []lane
	Ticks []tick
	Live  bool // it ends now
	Names bool // there are several locks: their names stand beside the lanes
}

// lane is one lock's.
type lane struct {
	Lock, Label string // the picture in a sentence
	Bars        []bar
	Cut         bool
}

// bar is one lease.
type bar struct {
	lockrepo.Span
	Class        string  // held or released, which is also how others look
	Size         string  // s, m, l or xl: how much may be written into it
	At           stretch // up to where it fell silent
	Whole        stretch
	Silent       *stretch // since the last beat
	Unowned      *stretch // since the lease ran out: nobody has the lock
	Tooth        bool     // it begins here
	Over         bool     // and takes over from one that was not released
	Edge         string   // bad: it ran out; forced: it was taken away
	Checkpointed []float64
	Ghost        *ghost
}

// stretch is from one place to another.
type stretch struct{ X, To float64 }

// Width is how wide it is.
func (s stretch) Width() float64 { return percent2(s.To - s.X) }

// ghost is the lane of an old holder: what it tried to write.
type ghost struct {
	stretch
	Marks []float64
	Left  bool // its label has no room on the right
}

// tick is a mark of the axis.
type tick struct {
	X     float64
	Label string
	Alt   bool // left out on a phone
	Edge  bool // too close to what stands at the end, on a phone
}

// window places times.
type window struct{ from, to time.Time }

// x is where a time is, in percent; what lies outside is at the edge.
func (w window) x(t time.Time) float64 {
	whole := w.to.Sub(w.from).Seconds()
	if whole <= 0 {
		return 100
	}
	return percent2(min(100, max(0, 100*t.Sub(w.from).Seconds()/whole)))
}

func (w window) has(t time.Time) bool { return !t.Before(w.from) && !t.After(w.to) }

func (w window) stretch(from, to time.Time) stretch { return stretch{w.x(from), w.x(to)} }

// percent2 has two digits: a tenth of a pixel.
func percent2(f float64) float64 { return math.Round(f*100) / 100 }

// Lanes draws a timeline for the template "lanes".
func (p *page) Lanes(t timeline) lanes {
	w := window{t.From, t.To}
	if w.to.IsZero() {
		w.to = p.Now
	}
	if w.from.IsZero() {
		w.from = w.to.Add(-t.Last)
	}
	out := lanes{Page: p, Live: t.To.IsZero(), Ticks: ticks(w, p.Zone)}
	for begin, end := 0, 0; begin < len(t.Rows); begin = end {
		for end = begin + 1; end < len(t.Rows) && t.Rows[end].Lock == t.Rows[begin].Lock; end++ {
		}
		out.Rows = append(out.Rows, p.lane(w, t.Rows[begin:end], t.cut(t.Rows[begin].Lock)))
	}
	out.Names = len(out.Rows) > 1
	return out
}

func (t timeline) cut(lock string) bool {
	for _, l := range t.Cut {
		if l == lock {
			return true
		}
	}
	return false
}

func (p *page) lane(w window, spans []lockrepo.Span, cut bool) lane {
	l := lane{Lock: spans[0].Lock, Cut: cut}
	for i, s := range spans {
		next := w.to
		if i+1 < len(spans) {
			next = spans[i+1].AcquiredAt
		}
		b := w.bar(s, next)
		b.Over = i > 0 && lost(spans[i-1].How)
		l.Bars = append(l.Bars, b)
	}
	l.Label = p.told(spans, cut)
	return l
}

// lost tells that a lease ended without its holder's release.
func lost(how string) bool { return how == "expired" || how == "taken_over" || how == "forced" }

func (w window) bar(s lockrepo.Span, next time.Time) bar {
	end := w.to
	if s.EndedAt != nil {
		end = *s.EndedAt
	}
	whole := w.stretch(s.AcquiredAt, end)
	b := bar{Span: s, Class: "released", At: whole, Whole: whole, Size: size(whole.Width()), Tooth: w.has(s.AcquiredAt), Ghost: w.ghost(s)}
	switch {
	case s.EndedAt == nil:
		b.Class = "held"
	case !w.has(end):
	case s.How == "forced":
		b.Edge = "forced"
	case lost(s.How):
		b.Edge = "bad"
	}
	if s.How == "expired" || s.How == "taken_over" {
		b.Unowned = &stretch{w.x(end), w.x(next)}
	}
	if silent(s, end) {
		at := w.stretch(*s.RenewedAt, end)
		b.Silent, b.At.To = &at, at.X
	}
	for _, at := range s.Checkpoints {
		if w.has(at) {
			b.Checkpointed = append(b.Checkpointed, w.x(at))
		}
	}
	return b
}

// silent tells that two beats were missing at a time; a holder beats every third of its TTL.
func silent(s lockrepo.Span, at time.Time) bool {
	if s.RenewedAt == nil || s.ExpiresAt == nil {
		return false
	}
	return at.Sub(*s.RenewedAt) > s.ExpiresAt.Sub(*s.RenewedAt)*2/3
}

// size is how much fits into a bar that is so wide.
func size(percent float64) string {
	switch {
	case percent > 48:
		return "xl"
	case percent > 28:
		return "l"
	case percent > 15:
		return "m"
	default:
		return "s"
	}
}

func (w window) ghost(s lockrepo.Span) *ghost {
	var g ghost
	for _, m := range s.Refusals {
		if w.has(m.At) {
			g.Marks = append(g.Marks, w.x(m.At))
		}
	}
	if len(g.Marks) == 0 {
		return nil
	}
	g.X, g.To = g.Marks[0], g.Marks[len(g.Marks)-1]
	g.Left = g.To > 78
	if s.EndedAt != nil {
		g.X = min(g.X, w.x(*s.EndedAt))
	}
	return &g
}

const mostTicks = 8

// ticks marks round times of the reader's zone.
func ticks(w window, zone *time.Location) []tick {
	step := stepOf(w.to.Sub(w.from))
	_, offset := w.from.In(zone).Zone()
	east := time.Duration(offset) * time.Second
	var all []tick
	for at := w.from.Add(east).Truncate(step).Add(step - east); at.Before(w.to); at = at.Add(step) {
		if x := w.x(at); x > 2.5 && x < 95 {
			all = append(all, tick{X: x, Label: at.In(zone).Format(layout(step)), Alt: len(all)%2 == 1, Edge: x > 86})
		}
	}
	return all
}

func stepOf(length time.Duration) time.Duration {
	const day = 24 * time.Hour
	for _, s := range []time.Duration{
		100 * time.Millisecond, time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute,
		30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 12 * time.Hour, day, 7 * day, 28 * day,
	} {
		if length/s <= mostTicks {
			return s
		}
	}
	return max(length/mostTicks, day)
}

func layout(step time.Duration) string {
	switch {
	case step < time.Second:
		return "05.0"
	case step < time.Minute:
		return "15:04:05"
	case step < 24*time.Hour:
		return "15:04"
	default:
		return "2" + nb + "Jan"
	}
}
