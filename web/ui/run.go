package ui

import (
	"context"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/lockrepo/keys"
)

// runPage is one run: its lease among those before and after it, and all that happened to it.
type runPage struct {
	jobs.RunDetail
	Timeline timeline

	Slots       *jobs.Slots     // that it found none of; nil: it needed none, or had one
	Holders     []lockrepo.Info // of some of them, as they are now
	MoreHolders bool
	Away        string // why they aren't known
}

const shownSlots = 5

// readSlots finds out who holds the permits that a run has waited for.
func (u *UI) readSlots(ctx context.Context, p *runPage) {
	s, ok := jobs.SlotsOf(p.Error)
	if !ok {
		return
	}
	p.Slots = &s
	held := panel(ctx, perPage, func(ctx context.Context, n int) ([]lockrepo.Info, error) {
		return u.cfg.Locks.List(ctx, lockrepo.Filter{Prefix: s.Name + "#", State: lockrepo.Held, Limit: n})
	})
	slots := s.Locks(s.Limit)
	p.Away = held.Away
	p.Holders = slices.DeleteFunc(held.Rows, func(l lockrepo.Info) bool { return !slices.Contains(slots, l.Lock) })
	if p.MoreHolders = held.More || len(p.Holders) > shownSlots; len(p.Holders) > shownSlots {
		p.Holders = p.Holders[:shownSlots]
	}
}

func (u *UI) run(q *request) error {
	id, err := uuid.Parse(q.args["id"])
	if err != nil {
		return notFound("There is no run of that id: an id is a UUID.")
	}
	type answer struct {
		runPage
		err error
	}
	got := share(q.r.Context(), u.shared, "run/"+id.String(), func(ctx context.Context) (a answer) {
		a.RunDetail, a.err = u.readRun(ctx, id)
		if a.err == nil {
			from, to := around(a.RunDetail)
			a.Timeline = u.readTimeline(ctx, lockrepo.SpanFilter{Lock: a.Lock, From: from, To: to}, time.Hour, perTimeline)
			a.Timeline.From, a.Timeline.To = from, to
			u.readSlots(ctx, &a.runPage)
		}
		return a
	})
	switch {
	case errors.Is(got.err, jobs.ErrUnknownRun):
		return notFound("There is no run of that id: it never was, or its history is not kept any more.")
	case got.err != nil:
		return got.err
	}
	return u.render(q, view{Name: "run", Title: got.Job + " " + got.Key, Nav: "runs", Data: got.runPage})
}

func (u *UI) readRun(ctx context.Context, id uuid.UUID) (jobs.RunDetail, error) {
	ctx, cancel := context.WithTimeout(ctx, panelTimeout)
	defer cancel()
	return u.cfg.Jobs.Run(ctx, id)
}

// around is the stretch that a run's picture shows: the attempts at its period, a little before and after. To is zero while
// one of them goes on.
func around(d jobs.RunDetail) (from, to time.Time) {
	from = d.StartedAt
	for _, a := range append([]jobs.RunRecord{d.RunRecord}, d.Attempts...) {
		if a.StartedAt.Before(from) {
			from = a.StartedAt
		}
		if a.EndedAt == nil {
			to = time.Time{}
			return from.Add(-time.Minute), to
		}
		if a.EndedAt.After(to) {
			to = *a.EndedAt
		}
	}
	for _, e := range d.Events { // the old holder's refused writes come later
		if e.At.After(to) {
			to = e.At
		}
	}
	edge := max(time.Second, to.Sub(from)/20)
	return from.Add(-edge), to.Add(edge)
}

// Payloads reports whether the user may see what runs were given and have said.
func (u User) Payloads() bool { return u.may(keys.Worker) }

// asText is bytes as they can be shown: what isn't UTF-8 is marked.
func asText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b)))
}

// eventClass draws an event like its mark in the timeline.
func eventClass(kind string) string {
	switch kind {
	case "acquired", "taken_over", "expired", "refused", "forced":
		return kind
	default:
		return "point"
	}
}
