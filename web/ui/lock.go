package ui

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
)

// lockPage is one lock: who holds it, and how it came to that.
type lockPage struct {
	Name     string
	Lock     Panel[lockRow] // one row; none: the lock was removed, and its history is left
	Span     string
	Timeline timeline
	Ended    int // leases that have ended, up to 10,001; -1: not known
	Tenures  Panel[lockrepo.Tenure]
	Next     string // the token below which the next page begins
	Refusals Panel[lockrepo.Refusal]
	Waiters  Panel[lockrepo.Waiter]
	Asked    Panel[approvals.Request] // to release it, and not decided
	now      time.Time
	err      error // there is nothing to show
}

// choice is one of what may be chosen, as it is written in the address, and in words.
type choice struct {
	Value, Words string
	length       time.Duration
}

func spanChoices() []choice {
	return []choice{
		{"30m", "30 minutes", 30 * time.Minute},
		{"6h", "6 hours", 6 * time.Hour},
		{"24h", "24 hours", 24 * time.Hour},
		{"7d", "7 days", 7 * 24 * time.Hour},
	}
}

// Spans are what may be chosen.
func (lockPage) Spans() []choice { return spanChoices() }

// SpanWords is what is chosen.
func (p lockPage) SpanWords() string {
	all := spanChoices()
	return all[slices.IndexFunc(all, func(c choice) bool { return c.Value == p.Span })].Words
}

// Stale tells that the last lease has ended and nobody has taken the lock since.
func (p lockPage) Stale() bool {
	return len(p.Lock.Rows) == 1 && p.Lock.Rows[0].State == lockrepo.Stale
}

const (
	perTimeline = 100 // leases of one lock
	perPart     = 20  // rows of a part whose list has a page of its own
)

func (u *UI) lock(q *request) error {
	query := q.r.URL.Query()
	span, err := chosen(query, "span", "30m", spanChoices())
	if err != nil {
		return err
	}
	before, err := beforeOf(query)
	if err != nil {
		return err
	}
	name := q.args["name"]
	data := share(q.r.Context(), u.shared, "lock "+name+"?"+query.Encode(), func(ctx context.Context) lockPage {
		return u.readLock(ctx, name, span, before)
	})
	if data.err != nil {
		return data.err
	}
	return u.render(q, view{Name: "lock", Title: name, Nav: "locks", Now: data.now, Data: data})
}

func (u *UI) readLock(ctx context.Context, name string, span choice, before int64) lockPage {
	p := lockPage{Name: name, Span: span.Value, Ended: -1, now: time.Now()}
	var showErr error
	together(
		func() {
			p.Lock = panel(ctx, 1, func(ctx context.Context, _ int) ([]lockRow, error) {
				l, err := u.cfg.Locks.Show(ctx, name)
				if showErr = err; errors.Is(err, lockrepo.ErrNotFound) {
					return nil, nil
				}
				return []lockRow{rowOf(l)}, err
			})
		},
		func() { p.Timeline = u.readTimeline(ctx, lockrepo.SpanFilter{Lock: name}, span.length, perTimeline) },
		func() {
			p.Tenures = panel(ctx, perPage, func(ctx context.Context, n int) ([]lockrepo.Tenure, error) {
				return u.cfg.Locks.History(ctx, name, n, before)
			})
		},
		func() {
			p.Refusals = panel(ctx, perPart, func(ctx context.Context, n int) ([]lockrepo.Refusal, error) {
				return u.cfg.Locks.Refusals(ctx, lockrepo.RefusalFilter{Lock: name, Limit: n})
			})
		},
		func() {
			p.Waiters = panel(ctx, perPage, func(ctx context.Context, n int) ([]lockrepo.Waiter, error) {
				return u.cfg.Locks.Waiters(ctx, name, n)
			})
		},
		func() {
			p.Asked = panel(ctx, perPage, func(ctx context.Context, _ int) ([]approvals.Request, error) { return u.askedOf(ctx, name) })
		},
		func() {
			panel(ctx, 1, func(ctx context.Context, _ int) ([]int, error) {
				ended, _, err := u.cfg.Locks.TenureCounts(ctx, name)
				if err == nil {
					p.Ended = ended
				}
				return nil, err
			})
		},
	)
	nothing := len(p.Tenures.Rows) == 0 && len(p.Refusals.Rows) == 0 && len(p.Waiters.Rows) == 0 && before == 0
	if errors.Is(showErr, lockrepo.ErrInput) || errors.Is(showErr, lockrepo.ErrNotFound) && nothing {
		p.err = showErr
	}
	if len(p.Lock.Rows) == 1 {
		p.now = p.Lock.Rows[0].ReadAt
	}
	if p.Tenures.More {
		p.Next = strconv.FormatInt(p.Tenures.Rows[len(p.Tenures.Rows)-1].Token, 10)
	}
	return p
}

// chosen is what the address chooses, or else what it means without.
func chosen(query url.Values, name, otherwise string, all []choice) (choice, error) {
	value := query.Get(name)
	if value == "" {
		value = otherwise
	}
	if i := slices.IndexFunc(all, func(c choice) bool { return c.Value == value }); i >= 0 {
		return all[i], nil
	}
	words := ""
	for i, c := range all {
		words += pick(i == 0, "", pick(i == len(all)-1, " or ", ", ")) + c.Value
	}
	return choice{}, notUnderstood("The " + name + " " + value + " does not exist: choose " + words + ".")
}

// beforeOf is where a list goes on by numbers; 0 is its beginning.
func beforeOf(query url.Values) (int64, error) {
	value := query.Get("before")
	if value == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 {
		return 0, notUnderstood("The place “" + value + "” in the list is none: begin at the list’s first page.")
	}
	return n, nil
}

func notUnderstood(detail string) *RefusedError {
	return &RefusedError{Status: 422, Title: "Not understood", Detail: detail}
}
