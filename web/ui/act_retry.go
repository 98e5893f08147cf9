package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"pawl/jobs"
)

// deadPage is a job's dead periods, the oldest first, as many as one act retries.
type deadPage struct {
	Job     string
	Periods []jobs.PeriodRecord
	More    bool
}

// retryDead owes the dead periods of a job again, those that were shown, each in a transaction of its own.
func (u *UI) retryDead(q *request) error {
	job := q.args["job"]
	return u.act(q, func(ctx context.Context) (*actPage, error) { return u.retryDeadPage(ctx, job) }, func(ctx context.Context) (string, error) {
		chosen, err := q.chosenPeriods()
		if err != nil {
			return "", err
		}
		reason, err := q.reason(1)
		if err != nil {
			return "", err
		}
		var wrong []string
		for _, c := range chosen {
			err := u.cfg.Acts.Retry(ctx, job, c.key, jobs.By{Actor: q.user.Name, Reason: reason, Seen: c.seen})
			if errors.Is(err, jobs.ErrUnknownJob) {
				return "", err
			}
			if err != nil {
				u.cfg.Logger.InfoContext(ctx, "ui: one of many", "job", job, "period", c.key, "error", err)
				wrong = append(wrong, c.key+": "+refusalOf(err).Detail)
			}
		}
		if len(wrong) > 0 {
			return "", stale(fmt.Sprintf("%d of %d are owed again, these are not. %s", len(chosen)-len(wrong), len(chosen), strings.Join(wrong, " ")), addr("ui", "periods", job), "Periods of "+job)
		}
		return addr("ui", "periods", job), nil
	})
}

func (u *UI) retryDeadPage(ctx context.Context, job string) (*actPage, error) {
	j, err := u.live(ctx, job)
	if err != nil {
		return nil, err
	}
	dead, err := u.cfg.Jobs.Dead(ctx, job, jobs.MostRetried+1)
	if err != nil {
		return nil, err
	}
	d := deadPage{Job: job, Periods: dead[:min(len(dead), jobs.MostRetried)], More: len(dead) > jobs.MostRetried}
	if len(dead) == 0 {
		return nil, &RefusedError{
			Status: http.StatusOK, Title: "Nothing to retry", Detail: "No period of " + job + " is dead.", Href: addr("ui", "jobs", job), Link: job,
		}
	}
	n := len(d.Periods)
	a := jobAct("Retry dead periods of", job)
	a.Button = fmt.Sprintf("Retry %d %s of %s", n, plural(n, "period", "periods"), job)
	a.Facts, a.Fields, a.Need, a.Danger, a.Data = jobFacts(j), "dead-list", 1, n > 1, d
	a.Steps = []string{"Each period is owed again by itself, with all its retries and a row of the audit log for each.", "They run oldest first. What waits behind them waits on until they are complete."}
	for _, p := range d.Periods { // it is done to those that were shown, as they were shown, and to no others
		seen := p.Seen()
		a.Hidden = append(a.Hidden, pair{"dead", strconv.Itoa(seen.Revision) + " " + strconv.FormatInt(seen.Token, 10) + " " + p.Key})
	}
	return a, nil
}

// chosenPeriod is a dead period of a form for many, as it was shown.
type chosenPeriod struct {
	key  string
	seen jobs.Seen
}

// chosenPeriods reads a form for many before anything is done to one of them.
func (q *request) chosenPeriods() (all []chosenPeriod, err error) {
	for _, text := range q.r.PostForm["dead"] {
		parts := strings.SplitN(text, " ", 3)
		if len(parts) != 3 || parts[2] == "" {
			return nil, badForm()
		}
		revision, err := strconv.Atoi(parts[0])
		if err != nil || revision < 1 {
			return nil, badForm()
		}
		token, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil || token < 0 {
			return nil, badForm()
		}
		all = append(all, chosenPeriod{parts[2], jobs.Seen{Revision: revision, State: "dead", Token: token}})
	}
	if len(all) == 0 || len(all) > jobs.MostRetried {
		return nil, badForm()
	}
	return all, nil
}
