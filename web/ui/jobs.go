package ui

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"pawl/jobs"
)

// jobsPage is the list of jobs, by name.
type jobsPage struct {
	Query, App, State string
	Next              string // the name after which the next page begins; empty: this is the last
	Jobs              Panel[jobs.JobSummary]
}

// States are the groups of jobs that one may choose.
func (jobsPage) States() []string {
	return []string{jobs.JobsAll, jobs.JobsTrouble, jobs.JobsPaused, jobs.JobsRetired}
}

const jobsPerPage = 50 // each has fourteen drawings, and a page has 200 KB at most

func (u *UI) jobs(q *request) error {
	query := q.r.URL.Query()
	f := jobs.JobFilter{Prefix: query.Get("q"), App: query.Get("app"), State: query.Get("state"), After: query.Get("after")}
	if f.State != "" && !slices.Contains(jobsPage{}.States(), f.State) {
		return unknownState(f.State, jobsPage{}.States())
	}
	data := share(q.r.Context(), u.shared, "jobs?"+query.Encode(), func(ctx context.Context) jobsPage {
		p := jobsPage{Query: f.Prefix, App: f.App, State: f.State}
		p.Jobs = panel(ctx, jobsPerPage, func(ctx context.Context, n int) ([]jobs.JobSummary, error) {
			f.Limit = n
			return u.cfg.Jobs.JobPage(ctx, f)
		})
		if p.Jobs.More {
			p.Next = p.Jobs.Rows[len(p.Jobs.Rows)-1].Job
		}
		return p
	})
	return u.render(q, view{Name: "jobs", Title: "Jobs", Nav: "jobs", Data: data})
}

func unknownState(state string, states []string) *RefusedError {
	return &RefusedError{Status: 422, Title: "Not understood", Detail: "The state " + state + " does not exist: choose one of " + strings.Join(states, ", ") + "."}
}

// jobPage is one job: what it is, how it went, what comes next.
type jobPage struct {
	jobs.JobSummary
	Outbox bool // its periods are messages
	Runs   Panel[jobs.RunRecord]
	Fields []field
}

// field is one setting of a job's definition.
type field struct{ Name, Value string }

// For are the settings that a user may read: what a run is given by default is none of a reader's.
func (p jobPage) For(user User) []field {
	if user.Payloads() {
		return p.Fields
	}
	return slices.DeleteFunc(slices.Clone(p.Fields), func(f field) bool { return f.Name == given })
}

func (u *UI) job(q *request) error {
	type answer struct {
		jobPage
		err error
	}
	name := q.args["job"]
	got := share(q.r.Context(), u.shared, "job/"+name, func(ctx context.Context) (a answer) {
		together(
			func() {
				ctx, cancel := context.WithTimeout(ctx, panelTimeout)
				defer cancel()
				a.JobSummary, a.err = u.cfg.Jobs.Job(ctx, name)
			},
			func() {
				a.Runs = panel(ctx, 10, func(ctx context.Context, n int) ([]jobs.RunRecord, error) {
					return u.cfg.Jobs.Runs(ctx, jobs.RunFilter{Job: name, Limit: n})
				})
			},
		)
		a.Fields = fieldsOf(a.Definition)
		a.Outbox = slices.Contains(a.Fields, field{"outbox", "true"})
		return a
	})
	if got.err != nil {
		return got.err
	}
	return u.render(q, view{Name: "job", Title: name, Nav: "jobs", Data: got.jobPage})
}

// fieldsOf lists a definition's settings by name, without those that a job of its kind leaves empty.
func fieldsOf(definition json.RawMessage) []field {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(definition, &all) // what can't be read is not listed; the job's health says why
	fields := make([]field, 0, len(all))
	for name, value := range all {
		if text := setting(name, value); text != "" {
			fields = append(fields, field{name, text})
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.Name, b.Name) })
	return fields
}

// mark is one period in a strip of them.
type mark struct {
	jobs.PeriodMark
	X int
}

// marks places a strip's periods, the newest at its right.
func marks(last []jobs.PeriodMark) []mark {
	out := make([]mark, len(last))
	for i, m := range last {
		out[i] = mark{m, 9 * (i + stripLength - len(last))}
	}
	return out
}

const stripLength = 14

// told is a strip in words, for who can't see it.
func told(last []jobs.PeriodMark) string {
	if len(last) == 0 {
		return "No period yet."
	}
	var b strings.Builder
	b.WriteString("The last periods, the newest last: ")
	for i, m := range last {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(m.Key + " " + m.State)
	}
	return b.String() + "."
}

// healthClass marks what somebody should look at.
func healthClass(health string) string {
	switch health {
	case "dead", "missed", "overdue":
		return "bad"
	case "late":
		return "warn"
	case "running":
		return "run"
	default:
		return "ok"
	}
}

// runClass marks what somebody should look at.
func runClass(state string) string {
	switch state {
	case "running":
		return "run"
	case "failed", "timed_out":
		return "bad"
	case "lost":
		return "warn"
	default:
		return "ok"
	}
}

// took is how long a run took, or takes until now.
func took(r jobs.RunRecord) time.Duration {
	if r.EndedAt == nil {
		return 0
	}
	return r.EndedAt.Sub(r.StartedAt)
}
