package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"pawl/jobs"
	"pawl/jobs/schedule"
)

const mostAtOnce = 200 // jobs that one form pauses or resumes

// bulkPage is the jobs that a filter of the list chooses and that an act can be done to.
type bulkPage struct {
	Filter string // in words
	Jobs   []jobs.JobSummary
	Zone   *time.Location
}

// chosen are the jobs that the query's filter chooses and that are, or aren't, paused.
func (u *UI) chosen(ctx context.Context, q *request, paused bool) (b bulkPage, err error) {
	query := q.r.URL.Query()
	f := jobs.JobFilter{Prefix: query.Get("q"), App: query.Get("app"), State: query.Get("state"), Limit: mostAtOnce}
	var words []string
	for _, w := range []pair{{"name begins with ", f.Prefix}, {"app ", f.App}, {"state ", f.State}} {
		if w.Value != "" && w.Value != jobs.JobsAll {
			words = append(words, w.Name+w.Value)
		}
	}
	b.Filter, b.Zone = firstOf(strings.Join(words, ", "), "all jobs"), zoneOf(q.r)
	for {
		page, err := u.cfg.Jobs.JobPage(ctx, f)
		if err != nil {
			return b, err
		}
		for _, j := range page {
			if j.RetiredAt == nil && (j.PausedAt != nil) == paused {
				b.Jobs = append(b.Jobs, j)
			}
		}
		switch {
		case len(b.Jobs) > mostAtOnce:
			return b, &RefusedError{
				Status: 422, Title: "Too many at once", Detail: fmt.Sprintf("The filter chooses more than %d jobs: choose fewer, by the beginning of their names or by app.", mostAtOnce),
				Href: "/ui/jobs", Link: "All jobs",
			}
		case len(page) < mostAtOnce:
			return b, nil
		}
		f.After = page[len(page)-1].Job
	}
}

func bulkAct(verb string, b bulkPage) (*actPage, error) {
	if len(b.Jobs) == 0 {
		return nil, &RefusedError{
			Status: http.StatusOK, Title: "Nothing to " + strings.ToLower(verb), Detail: "No job that the filter chooses can be " + strings.ToLower(verb) + "d: " + b.Filter + ".",
			Href: "/ui/jobs", Link: "All jobs",
		}
	}
	what := fmt.Sprintf("%d %s", len(b.Jobs), plural(len(b.Jobs), "job", "jobs"))
	a := &actPage{
		Title: verb + " ", Of: what, Button: verb + " " + what, Danger: true, Data: b,
		Crumbs: []crumb{{"/ui/jobs", "Jobs"}}, Back: crumb{"/ui/jobs", "Leave them"}, Facts: []fact{{Name: "Filter", Value: b.Filter}, {Name: "Jobs", Value: what}},
	}
	for _, j := range b.Jobs { // it is done to those that were shown, and to no others
		seen := ""
		if j.PausedAt != nil {
			seen = "@" + j.PausedAt.UTC().Format(time.RFC3339Nano)
		}
		a.Hidden = append(a.Hidden, pair{"job", j.Job + seen})
	}
	return a, nil
}

// pauseAll pauses all jobs that the filter of the list chooses, each in a transaction of its own.
func (u *UI) pauseAll(q *request) error {
	return u.act(q, func(ctx context.Context) (*actPage, error) {
		b, err := u.chosen(ctx, q, false)
		if err != nil {
			return nil, err
		}
		a, err := bulkAct("Pause", b)
		if err == nil {
			a.Steps, a.Fields, a.Need = append([]string{"Each job is paused by itself, with a row of the audit log for each."}, pauseSteps...), "bulk-pause", 1
		}
		return a, err
	}, func(ctx context.Context) (string, error) {
		c, err := q.pauseConfig()
		if err != nil {
			return "", err
		}
		return u.each(ctx, q, "paused", func(ctx context.Context, job string, _ time.Time) error { return sooner(u.cfg.Acts.Pause(ctx, job, c)) })
	})
}

// resumeAll resumes all jobs that the filter of the list chooses.
func (u *UI) resumeAll(q *request) error {
	return u.act(q, func(ctx context.Context) (*actPage, error) {
		b, err := u.chosen(ctx, q, true)
		if err != nil {
			return nil, err
		}
		a, err := bulkAct("Resume", b)
		if err == nil {
			a.Steps, a.Fields, a.Optional = []string{"Each job is resumed by itself, with a row of the audit log for each.", "What was owed before its pause goes on."}, "bulk-resume", true
		}
		return a, err
	}, func(ctx context.Context) (string, error) {
		reason, err := q.reason(0)
		if err != nil {
			return "", err
		}
		return u.each(ctx, q, "resumed", func(ctx context.Context, job string, since time.Time) error {
			by := jobs.By{Actor: q.user.Name, Reason: reason, Seen: jobs.Seen{PausedAt: since}}
			_, err := u.cfg.Acts.Resume(ctx, job, by, schedule.CatchUp(q.r.PostForm.Get("owe")))
			return err
		})
	})
}

// each does one thing to all jobs of the form. What can't be done to some is told when it is done to the others.
func (u *UI) each(ctx context.Context, q *request, done string, do func(context.Context, string, time.Time) error) (string, error) {
	chosen, ok := q.chosenJobs()
	if !ok {
		return "", badForm()
	}
	var wrong []string
	for _, c := range chosen {
		err := do(ctx, c.job, c.since)
		var field *fieldError
		if errors.As(err, &field) {
			return "", err
		}
		if err != nil {
			u.cfg.Logger.InfoContext(ctx, "ui: one of many", "job", c.job, "error", err)
			wrong = append(wrong, c.job+": "+refusalOf(err).Detail)
		}
	}
	if len(wrong) > 0 {
		return "", stale(fmt.Sprintf("%d of %d were %s, these were not. %s", len(chosen)-len(wrong), len(chosen), done, strings.Join(wrong, " ")), "/ui/jobs", "All jobs")
	}
	if query := q.r.URL.RawQuery; query != "" {
		return "/ui/jobs?" + query, nil
	}
	return "/ui/jobs", nil
}

// chosenJob is a job of a form for many, and since when it was paused then.
type chosenJob struct {
	job   string
	since time.Time
}

// chosenJobs reads a form for many before anything is done to one of them. What is resumed says which pause it ends.
func (q *request) chosenJobs() (all []chosenJob, ok bool) {
	resumes := strings.HasSuffix(q.r.URL.Path, "/resume")
	for _, text := range q.r.PostForm["job"] {
		job, at, paused := strings.Cut(text, "@")
		c := chosenJob{job: job}
		if paused != resumes {
			return nil, false
		}
		if paused {
			t, err := time.Parse(time.RFC3339Nano, at)
			if err != nil {
				return nil, false
			}
			c.since = t
		}
		all = append(all, c)
	}
	return all, 0 < len(all) && len(all) <= mostAtOnce
}
