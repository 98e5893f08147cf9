package ui

import (
	"context"
	"errors"
	"slices"

	"pawl/jobs"
)

// outboxPage is the messages that nobody sends any more, or that are still to be sent, the oldest first.
type outboxPage struct {
	Filter   jobs.MessageFilter
	Next     string // where the next page begins; empty: this is the last
	Messages Panel[jobs.MessageInfo]
}

// States are the tabs.
func (outboxPage) States() []string { return []string{"dead", jobs.MessageWaiting} }

func (u *UI) outbox(q *request) error {
	query := q.r.URL.Query()
	p := outboxPage{Filter: jobs.MessageFilter{Outbox: query.Get("outbox"), MessageKey: query.Get("key"), State: query.Get("state"), After: query.Get("after")}}
	if p.Filter.State == "" {
		p.Filter.State = "dead"
	}
	if !slices.Contains(p.States(), p.Filter.State) {
		return unknownState(p.Filter.State, p.States())
	}
	type answer struct {
		outboxPage
		err error
	}
	got := share(q.r.Context(), u.shared, "outbox?"+query.Encode(), func(ctx context.Context) answer {
		a := answer{outboxPage: p}
		a.Messages = panel(ctx, perPage, func(ctx context.Context, n int) (list []jobs.MessageInfo, err error) {
			f := p.Filter
			f.Limit = n
			list, err = u.cfg.Jobs.Messages(ctx, f)
			if errors.Is(err, jobs.ErrCursor) {
				a.err, err = badPlace(), nil
			}
			return list, err
		})
		if a.Messages.More {
			a.Next = a.Messages.Rows[len(a.Messages.Rows)-1].Cursor()
		}
		return a
	})
	if got.err != nil {
		return got.err
	}
	return u.render(q, view{Name: "outbox", Title: "Outbox", Nav: "jobs", Data: got.outboxPage})
}

// messageText is what a message does at this moment.
func messageText(m jobs.MessageInfo) string {
	switch {
	case m.State == "open" && m.Waits == "dead":
		return "waits behind a dead one"
	case m.State == "open" && m.Waits != "":
		return "waits: " + m.Waits
	case m.State == "open":
		return "waits to be sent"
	case m.State == "running":
		return "is being sent"
	}
	return m.State
}

// behindText is how many wait for a dead message, as far as they are counted.
func behindText(m jobs.MessageInfo) string {
	if m.Behind > 1000 {
		return "over 1,000"
	}
	return comma(int64(m.Behind))
}
