package ui

import (
	"context"
	"strconv"

	"pawl/jobs"
)

// periodPage is one period's life in sentences, with its runs.
type periodPage struct {
	jobs.Why
	Runs Panel[jobs.RunRecord]
	Part shardsPart // without rows where it wasn't fanned out
}

// For are the sentences that a user may read.
func (p periodPage) For(user User) []string {
	if user.Payloads() {
		return p.Sentences
	}
	return p.Public()
}

func (u *UI) period(q *request) error {
	type answer struct {
		periodPage
		err error
	}
	job, key := q.args["job"], q.args["key"]
	state, after, err := wantedShards(q.r.URL.Query())
	if err != nil {
		return err
	}
	page := strconv.Quote(job) + " " + strconv.Quote(key) + " " + state + strconv.FormatInt(after, 10)
	got := share(q.r.Context(), u.shared, page, func(ctx context.Context) (a answer) {
		together(
			func() {
				ctx, cancel := context.WithTimeout(ctx, panelTimeout)
				defer cancel()
				a.Why, a.err = u.cfg.Jobs.Why(ctx, job, key)
			},
			func() { a.Part = u.readShards(ctx, job, key, state, after) },
			func() {
				a.Runs = panel(ctx, perPage, func(ctx context.Context, n int) ([]jobs.RunRecord, error) {
					return u.cfg.Jobs.Runs(ctx, jobs.RunFilter{Job: job, Key: key, Limit: n})
				})
			},
		)
		return a
	})
	if got.err != nil {
		return got.err
	}
	return u.render(q, view{Name: "period", Title: job + " " + key, Nav: "jobs", Data: got.periodPage})
}
