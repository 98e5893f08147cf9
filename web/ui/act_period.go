package ui

import (
	"context"
	"errors"
	"net/url"
	"strconv"

	"pawl/fence"
	"pawl/jobs"
)

// known is a period's last revision, with an empty state if nothing is known of it.
func (u *UI) known(ctx context.Context, job, key string) (jobs.PeriodRecord, string, error) {
	p, err := u.cfg.Jobs.Latest(ctx, job, key)
	if errors.Is(err, jobs.ErrUnknownPeriod) {
		return p, "", nil
	}
	return p, p.State, err
}

func asConfig(err error, target **jobs.ConfigError) bool { return errors.As(err, target) }

// periodAct is the page of what is done to one period, made for its revision, its state and its run.
func (u *UI) periodAct(ctx context.Context, verb, job, key string) (*actPage, jobs.PeriodRecord, error) {
	if _, err := u.live(ctx, job); err != nil {
		return nil, jobs.PeriodRecord{}, err
	}
	p, err := u.cfg.Jobs.Latest(ctx, job, key)
	if err != nil {
		return nil, p, err
	}
	back := crumb{addr("ui", "periods", job), "Periods"}
	a := &actPage{
		Title: verb + " ", Of: job + ", period " + key, Button: verb + " " + key + " of " + job, Back: crumb{back.Path, "Leave it"},
		Crumbs: []crumb{{"/ui/jobs", "Jobs"}, {addr("ui", "jobs", job), job}, back},
		Facts: []fact{
			{Name: "Period", Value: p.Key},
			{Name: "It is", Value: p.State},
			{Name: "Revision", Value: strconv.Itoa(p.Revision)},
			{Name: "Scheduled at", At: &p.ScheduledAt},
			{Name: "Attempts", Value: strconv.Itoa(p.Attempts), Href: addr("ui", "runs") + "?job=" + url.QueryEscape(job)},
		},
		Hidden: []pair{{"revision", strconv.Itoa(p.Revision)}, {"state", p.State}},
	}
	if p.CompletedAt != nil {
		a.Facts = append(a.Facts, fact{Name: "Complete since", At: p.CompletedAt})
	}
	if p.Token != nil {
		a.Facts = append(a.Facts, fact{Name: "Token", Value: fence.FormatSeq(*p.Token), Code: true})
		a.Hidden = append(a.Hidden, pair{"token", strconv.FormatInt(*p.Token, 10)})
	}
	return a, p, nil
}

// seen is what a form was made for.
func (q *request) seen() (s jobs.Seen, err error) {
	s.State = q.r.PostForm.Get("state")
	if s.Revision, err = strconv.Atoi(q.r.PostForm.Get("revision")); err != nil || s.Revision < 1 || s.State == "" {
		return s, badForm()
	}
	if token := q.r.PostForm.Get("token"); token != "" {
		if s.Token, err = strconv.ParseInt(token, 10, 64); err != nil {
			return s, badForm()
		}
	}
	return s, nil
}

// by is who acts on a period, why, and on what they saw.
func (q *request) by(need int) (by jobs.By, err error) {
	by.Actor = q.user.Name
	if by.Seen, err = q.seen(); err == nil {
		by.Reason, err = q.reason(need)
	}
	return by, err
}

// wrongState is the answer to the page of an act that the period isn't in the state for.
func wrongState(p jobs.PeriodRecord, fix string) error {
	return stale(p.Job+" "+p.Key+" is "+p.State+": "+fix, addr("ui", "periods", p.Job), "Periods of "+p.Job)
}

// rerun owes a complete period once more.
func (u *UI) rerun(q *request) error {
	job, key := q.args["job"], q.args["key"]
	return u.act(q, func(ctx context.Context) (*actPage, error) {
		a, p, err := u.periodAct(ctx, "Rerun", job, key)
		switch {
		case err != nil:
			return nil, err
		case p.State != "complete":
			return nil, wrongState(p, "only what is complete is rerun. Retry a dead period; run or backfill others.")
		}
		a.Danger, a.Need, a.Fields = true, 1, "rerun-fields"
		a.Steps = []string{
			"The period is owed once more, as revision " + strconv.Itoa(p.Revision+1) + ". Revision " + strconv.Itoa(p.Revision) + " stays as it is.",
			"What its work has written before is there: work that isn’t made to be repeated is done twice.",
		}
		return a, nil
	}, func(ctx context.Context) (string, error) {
		by, err := q.by(1)
		if err != nil {
			return "", err
		}
		_, err = u.cfg.Acts.Rerun(ctx, job, key, jobs.RerunConfig{
			Actor: by.Actor, Reason: by.Reason, Seen: by.Seen, RepeatEffects: q.r.PostForm.Get("repeat") == "yes",
		})
		return addr("ui", "periods", job), err
	})
}

// retry owes a dead period again.
func (u *UI) retry(q *request) error {
	job, key := q.args["job"], q.args["key"]
	return u.act(q, func(ctx context.Context) (*actPage, error) {
		a, p, err := u.periodAct(ctx, "Retry", job, key)
		switch {
		case err != nil:
			return nil, err
		case p.State != "dead":
			return nil, wrongState(p, "only what is dead is retried.")
		}
		a.Optional = true
		a.Steps = []string{"The period is owed again, with all its retries.", "What waits behind it waits on until it is complete."}
		return a, nil
	}, func(ctx context.Context) (string, error) {
		by, err := q.by(0)
		if err != nil {
			return "", err
		}
		return addr("ui", "periods", job), u.cfg.Acts.Retry(ctx, job, key, by)
	})
}

// cancel ends a period that is owed, held, running or dead.
func (u *UI) cancel(q *request) error {
	job, key := q.args["job"], q.args["key"]
	return u.act(q, func(ctx context.Context) (*actPage, error) {
		a, p, err := u.periodAct(ctx, "Cancel", job, key)
		if err != nil {
			return nil, err
		}
		a.Danger, a.Need = true, 1
		switch p.State {
		case "running":
			a.Steps = []string{"Its run loses its lease at once. What it has not committed by then it can’t commit any more.", "The period doesn’t run again. The next one starts when the run is gone."}
		case "dead":
			a.Steps = []string{"The period stays undone for good.", "What waited behind it goes on."}
		case "open", "held":
			a.Steps = []string{"The period doesn’t run any more."}
		default:
			return nil, wrongState(p, "it has ended, so there is nothing to cancel.")
		}
		return a, nil
	}, func(ctx context.Context) (string, error) {
		by, err := q.by(1)
		if err != nil {
			return "", err
		}
		return addr("ui", "periods", job), u.cfg.Acts.Cancel(ctx, job, key, by)
	})
}
