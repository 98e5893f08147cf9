package ui

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"pawl/jobs"
)

// runsPage is the list of runs, the newest first.
type runsPage struct {
	Filter jobs.RunFilter
	From   string // as in the query
	To     string
	Next   string // the cursor of the next page; empty: this is the last
	Runs   Panel[jobs.RunRecord]
}

// States are those that a run may have.
func (runsPage) States() []string {
	return []string{"running", "complete", "failed", "timed_out", "lost", "drained", "cancelled", "skipped"}
}

func (u *UI) runs(q *request) error {
	query := q.r.URL.Query()
	p := runsPage{From: query.Get("from"), To: query.Get("to"), Filter: jobs.RunFilter{
		Job: query.Get("job"), Key: query.Get("period"), State: query.Get("state"), Holder: query.Get("holder"), Before: query.Get("before"),
	}}
	if p.Filter.State != "" && !slices.Contains(p.States(), p.Filter.State) {
		return unknownState(p.Filter.State, p.States())
	}
	var err error
	if p.Filter.From, p.Filter.To, err = between(query); err != nil {
		return err
	}
	p = share(q.r.Context(), u.shared, "runs?"+query.Encode(), func(ctx context.Context) runsPage {
		p.Runs = panel(ctx, perPage, func(ctx context.Context, n int) ([]jobs.RunRecord, error) {
			f := p.Filter
			f.Limit = n
			return u.cfg.Jobs.Runs(ctx, f)
		})
		if p.Runs.More {
			p.Next = p.Runs.Rows[len(p.Runs.Rows)-1].Cursor()
		}
		return p
	})
	return u.render(q, view{Name: "runs", Title: "Runs", Nav: "runs", Data: p})
}

// between reads from and to, in UTC, each a day or a minute. From is part of the stretch, to is not.
func between(query url.Values) (from, to time.Time, err error) {
	if from, err = instant(query, "from"); err == nil {
		to, err = instant(query, "to")
	}
	return from, to, err
}

func instant(query url.Values, name string) (time.Time, error) {
	text := query.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, &RefusedError{
		Status: http.StatusUnprocessableEntity, Title: "Not understood",
		Detail: "The time " + text + " in " + name + " can’t be read: write a day such as 2026-09-16, or a minute such as 2026-09-16T14:00, in UTC.",
	}
}
