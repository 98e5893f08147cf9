package ui

import (
	"context"
	"strconv"
	"strings"
	"time"

	"pawl/lockrepo"
)

// refusalsPage is the list of writes that the fence turned away, and of those that log mode let pass.
type refusalsPage struct {
	Lock, Holder, Kind, Since string
	Writers                   Panel[lockrepo.RefusalGroup] // who wrote them, above the first page of all
	Grouped                   bool
	Partly                    bool // only the newest 10,001 were grouped
	Refusals                  Panel[lockrepo.Refusal]
	Next                      string
	now                       time.Time
	err                       error // what was asked for can't be
}

// Kinds and Times are what may be chosen.
func (refusalsPage) Kinds() []choice { return kindChoices() }

// Times are what may be chosen.
func (refusalsPage) Times() []choice { return sinceChoices() }

// Filtered reports that not all are asked for.
func (p refusalsPage) Filtered() bool { return p.Lock+p.Holder+p.Kind+p.Since != "" }

func kindChoices() []choice {
	return []choice{{Words: "all"}, {Value: lockrepo.Refused, Words: "refused"}, {Value: lockrepo.Passed, Words: "let through (log mode)"}}
}

func sinceChoices() []choice {
	return []choice{{Words: "ever"}, {"1h", "the last hour", time.Hour}, {"24h", "the last day", 24 * time.Hour}, {"7d", "the last week", 7 * 24 * time.Hour}}
}

// mostGrouped is where the database stops grouping.
const mostGrouped = 10_001

func (u *UI) refusals(q *request) error {
	query := q.r.URL.Query()
	kind, err := chosen(query, "kind", "", kindChoices())
	if err != nil {
		return err
	}
	since, err := chosen(query, "since", "", sinceChoices())
	if err != nil {
		return err
	}
	before, err := beforeOf(query)
	if err != nil {
		return err
	}
	f := lockrepo.RefusalFilter{Lock: query.Get("lock"), Holder: query.Get("holder"), Kind: kind.Value, Before: before}
	data := share(q.r.Context(), u.shared, "refusals?"+query.Encode(), func(ctx context.Context) refusalsPage {
		return u.readRefusals(ctx, f, since)
	})
	if data.err != nil {
		return data.err
	}
	return u.render(q, view{Name: "refusals", Title: "Refused writes", Nav: "locks", Now: data.now, Data: data})
}

func (u *UI) readRefusals(ctx context.Context, f lockrepo.RefusalFilter, since choice) refusalsPage {
	p := refusalsPage{Lock: f.Lock, Holder: f.Holder, Kind: f.Kind, Since: since.Value, now: time.Now()}
	if since.length > 0 {
		f.Since = p.now.Add(-since.length)
	}
	p.Grouped = f.Lock == "" && f.Holder == "" && f.Kind != lockrepo.Passed && f.Before == 0
	together(
		func() {
			p.Refusals = panel(ctx, perPage, func(ctx context.Context, n int) ([]lockrepo.Refusal, error) {
				f := f
				f.Limit = n
				rows, err := u.cfg.Locks.Refusals(ctx, f)
				p.err = inputOf(err)
				return rows, err
			})
		},
		func() {
			if p.Grouped {
				p.Writers = u.readWriters(ctx, f.Since, perPart)
				p.Partly = sum(p.Writers.Rows) >= mostGrouped
			}
		},
	)
	if p.Refusals.More {
		p.Next = strconv.FormatInt(p.Refusals.Rows[len(p.Refusals.Rows)-1].ID, 10)
	}
	return p
}

func (u *UI) readWriters(ctx context.Context, since time.Time, limit int) Panel[lockrepo.RefusalGroup] {
	return panel(ctx, limit, func(ctx context.Context, n int) ([]lockrepo.RefusalGroup, error) {
		return u.cfg.Locks.RefusalGroups(ctx, since, n)
	})
}

func sum(groups []lockrepo.RefusalGroup) (n int) {
	for _, g := range groups {
		n += g.Count
	}
	return n
}

// oneLine is a statement without its line breaks.
func oneLine(statement string) string { return strings.Join(strings.Fields(statement), " ") }

// writes are refused writes for the template "refusal-rows": of all locks, or of one.
type writes struct {
	Page *page
	Rows []lockrepo.Refusal
	Lock string // empty: of all
}

// Writes hands refused writes to the template "refusal-rows".
func (p *page) Writes(rows []lockrepo.Refusal, lock string) writes { return writes{p, rows, lock} }
