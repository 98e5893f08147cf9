package ui

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pawl/fence"
	"pawl/lockrepo"
)

// mostTold is how many leases of a lane are read out: the newest.
const mostTold = 12

// told is a lane in a sentence.
func (p *page) told(spans []lockrepo.Span, cut bool) string {
	var parts []string
	if more := len(spans) - mostTold; more > 0 || cut {
		spans = spans[max(0, more):]
		parts = append(parts, fmt.Sprintf("the newest %d leases", len(spans)))
	}
	for _, s := range spans {
		part := fmt.Sprintf("token %s, %s, from %s, %s", fence.FormatSeq(s.Token), s.Holder, p.At(s.AcquiredAt).Clock(), p.Ended(s))
		if n := len(s.Refusals); n > 0 {
			part += ", then " + refused(s)
		}
		parts = append(parts, part)
	}
	return spans[0].Lock + ": " + strings.Join(parts, "; ") + "."
}

// Ended is how a lease ended, and when.
func (p *page) Ended(s lockrepo.Span) string {
	if s.EndedAt == nil {
		return "still held"
	}
	at := p.At(*s.EndedAt).Clock()
	switch s.How {
	case "expired":
		return "expired " + at + " and not taken over"
	case "taken_over":
		return "expired " + at + " without release"
	case "forced":
		return "released by force " + at
	case "reacquired":
		return "taken anew by its holder " + at
	default:
		return "released " + at
	}
}

// refused says how many writes were refused under a token.
func refused(s lockrepo.Span) string {
	n := len(s.Refusals)
	return fmt.Sprintf("%d%s %s refused", n, pick(s.RefusalsMore, "+", ""), plural(n, "write", "writes"))
}

// Refused says how many writes were refused under a token.
func (b bar) Refused() string { return refused(b.Span) }

// Number is the token's.
func (b bar) Number() string { return fence.FormatSeq(b.Token) }

// readTimeline reads the leases of the last so long, or of what the filter says, at most each of a lock.
func (u *UI) readTimeline(ctx context.Context, f lockrepo.SpanFilter, last time.Duration, each int) timeline {
	now := time.Now()
	t := timeline{Last: last, Minute: now.Unix() / 60}
	f.Limit = each + 1
	if f.From.IsZero() {
		f.From = now.Add(-last)
	}
	ctx, cancel := context.WithTimeout(ctx, panelTimeout)
	defer cancel()
	spans, err := u.cfg.Locks.Spans(ctx, f)
	if err != nil {
		t.Away = reason(err)
		return t
	}
	t.Rows, t.Cut = cutEach(spans, each)
	return t
}

// closer shows less time where all that there is happened lately: of a minute's work half an hour would be a dot.
func (t timeline) closer(now time.Time) timeline {
	for _, last := range []time.Duration{2 * time.Minute, 10 * time.Minute} {
		lately := func(s lockrepo.Span) bool { return s.AcquiredAt.After(now.Add(-last)) }
		if last < t.Last && len(t.Rows) > 0 && !slices.ContainsFunc(t.Rows, func(s lockrepo.Span) bool { return !lately(s) }) {
			t.Last = last
			return t
		}
	}
	return t
}

// Length is how much time is shown, in words.
func (t timeline) Length() string { return strconv.Itoa(int(t.Last.Minutes())) + " minutes" }

// cutEach leaves the newest spans of each lock, and tells which locks have more.
func cutEach(spans []lockrepo.Span, each int) (kept []lockrepo.Span, cut []string) {
	kept = spans[:0:0]
	for begin, end := 0, 0; begin < len(spans); begin = end {
		for end = begin + 1; end < len(spans) && spans[end].Lock == spans[begin].Lock; end++ {
		}
		if end-begin > each {
			cut = append(cut, spans[begin].Lock)
			begin = end - each
		}
		kept = append(kept, spans[begin:end]...)
	}
	return kept, cut
}
