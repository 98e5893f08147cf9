package ui

import (
	"context"
	"slices"

	"pawl/jobs"
)

// periodsPage is what one job owed, owes, and didn't do.
type periodsPage struct {
	Job     jobs.JobSummary
	Filter  jobs.PeriodFilter
	From    string // as in the query
	To      string
	Next    string // the cursor of the next page; empty: this is the last
	Periods Panel[jobs.PeriodRecord]

	Calendar calendar
}

// States are those that a period may have.
func (periodsPage) States() []string {
	return []string{"open", "running", "complete", "dead", "missed", "skipped", "held", "cancelled"}
}

func (u *UI) periods(q *request) error {
	query, job := q.r.URL.Query(), q.args["job"]
	p := periodsPage{From: query.Get("from"), To: query.Get("to"), Filter: jobs.PeriodFilter{Job: job, State: query.Get("state"), Before: query.Get("before")}}
	if p.Filter.State != "" && !slices.Contains(p.States(), p.Filter.State) {
		return unknownState(p.Filter.State, p.States())
	}
	var err error
	if p.Filter.From, p.Filter.To, err = between(query); err != nil {
		return err
	}
	until, err := instant(query, "until")
	if err != nil {
		return err
	}
	type answer struct {
		periodsPage
		err error
	}
	got := share(q.r.Context(), u.shared, "periods/"+job+"?"+query.Encode(), func(ctx context.Context) (a answer) {
		a.periodsPage = p
		together(
			func() {
				ctx, cancel := context.WithTimeout(ctx, panelTimeout)
				defer cancel()
				if a.Job, a.err = u.cfg.Jobs.Job(ctx, job); a.err == nil {
					a.Calendar = u.readCalendar(ctx, job, a.Job.Period, until)
				}
			},
			func() {
				a.Periods = panel(ctx, perPage, func(ctx context.Context, n int) ([]jobs.PeriodRecord, error) {
					f := p.Filter
					f.Limit = n
					return u.cfg.Jobs.Periods(ctx, f)
				})
			},
		)
		if a.Periods.More {
			a.Next = a.Periods.Rows[len(a.Periods.Rows)-1].Cursor()
		}
		return a
	})
	if got.err != nil {
		return got.err
	}
	return u.render(q, view{Name: "periods", Title: "Periods of " + job, Nav: "jobs", Data: got.periodsPage})
}

// cellClass is the shape of a period in the calendar.
func cellClass(state string) string {
	switch state {
	case "complete", "late", "missed", "dead", "running", "open":
		return state
	case "held", "skipped", "cancelled":
		return "held"
	default:
		return "none"
	}
}

// periodClass marks what somebody should look at.
func periodClass(state string) string {
	switch state {
	case "dead", "missed":
		return "bad"
	case "held":
		return "warn"
	case "running":
		return "run"
	default:
		return "ok"
	}
}
