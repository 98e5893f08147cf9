package ui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pawl/jobs"
	"pawl/jobs/schedule"
)

// backfillPage is a range of a job's periods, and what is known of them.
type backfillPage struct {
	From, To string
	Asked    bool // there is a range
	Periods  []jobs.BackfillPeriod
	Owed     int // how many of them would be owed
	Hint     string
	Params   map[string]string // that are given
}

const mostNamed = 400 // periods, or jobs, that a page names before an act

// First is what the page names of the list.
func (b backfillPage) First() []jobs.BackfillPeriod {
	return b.Periods[:min(len(b.Periods), mostNamed)]
}

// Left is how many it leaves out.
func (b backfillPage) Left() int { return len(b.Periods) - len(b.First()) }

// backfill owes the periods of a range: first the range is asked for, by GET, then the list is shown, and then it is done.
func (u *UI) backfill(q *request) error {
	job := q.args["job"]
	return u.act(q, func(ctx context.Context) (*actPage, error) { return u.backfillPage(ctx, q, job) }, func(ctx context.Context) (string, error) {
		owed, err := strconv.Atoi(q.r.PostForm.Get("owed"))
		if err != nil || owed < 1 {
			return "", badForm()
		}
		reason, err := q.reason(1)
		if err != nil {
			return "", err
		}
		c := jobs.BackfillConfig{Actor: q.user.Name, Reason: reason, Seen: jobs.Seen{Owed: owed}, Params: params(q.r.PostForm)}
		_, err = u.cfg.Acts.Backfill(ctx, job, strings.TrimSpace(q.r.PostForm.Get("from")), strings.TrimSpace(q.r.PostForm.Get("to")), c)
		return addr("ui", "periods", job), err
	})
}

func (u *UI) backfillPage(ctx context.Context, q *request, job string) (*actPage, error) {
	j, err := u.live(ctx, job)
	if err != nil {
		return nil, err
	}
	if j.Schedule == "@manual" {
		return nil, stale("This job has no schedule that would owe periods: run it instead.", addr("ui", "jobs", job, "run"), "Run "+job)
	}
	sent := q.r.URL.Query()
	if len(q.r.PostForm) > 0 {
		sent = q.r.PostForm
	}
	b := backfillPage{Params: params(sent), From: strings.TrimSpace(sent.Get("from")), To: strings.TrimSpace(sent.Get("to"))}
	if n := len(j.Last14); n > 0 {
		b.Hint = j.Last14[n-1].Key
	}
	a := jobAct("Backfill", job)
	a.Facts, a.Fields, a.Params = jobFacts(j), "backfill-range", paramsOf(j.Definition)
	a.Sent = map[string]string{}
	for name, value := range b.Params {
		a.Sent[paramField+name] = value
	}
	a.Steps = []string{"First the list of what would run is shown; nothing is owed before you confirm it.", "What is complete, or owed already, is left alone."}
	if b.From != "" || b.To != "" {
		if b.To == "" {
			b.To = b.From
		}
		if err := u.listBackfill(ctx, job, a, &b); err != nil {
			return nil, err
		}
	}
	a.Data = b
	return a, nil
}

// listBackfill makes a the page that confirms.
func (u *UI) listBackfill(ctx context.Context, job string, a *actPage, b *backfillPage) (err error) {
	var field *schedule.FieldError
	b.Periods, err = u.cfg.Acts.BackfillList(ctx, job, b.From, b.To, jobs.BackfillConfig{Params: b.Params})
	var given *jobs.ParamError
	switch {
	case errors.As(err, &given):
		bad := badParam(given)
		a.Err, a.Bad = bad.sentence, bad.field
		return nil
	case errors.As(err, &field):
		a.Err, a.Bad = sentence(err.Error()), field.Field
		return nil
	case errors.Is(err, jobs.ErrTooMany):
		a.Err, a.Bad = sentence(err.Error()), "to"
		return nil
	case err != nil:
		return err
	}
	b.Asked = true
	for _, p := range b.Periods {
		if p.Owe {
			b.Owed++
		}
	}
	a.Steps = nil
	if b.Owed == 0 {
		return nil
	}
	a.Fields, a.Need, a.Danger = "backfill-list", 1, b.Owed > mostNamed
	a.Button = fmt.Sprintf("Backfill %s %s of %s", comma(int64(b.Owed)), plural(b.Owed, "period", "periods"), job)
	a.Steps = []string{"They run oldest first, after what the schedule itself owes, one at a time where the job says so."}
	a.Hidden = []pair{{"owed", strconv.Itoa(b.Owed)}, {"from", b.From}, {"to", b.To}}
	for _, name := range slices.Sorted(maps.Keys(b.Params)) {
		a.Hidden = append(a.Hidden, pair{paramField + name, b.Params[name]})
		a.Facts = append(a.Facts, fact{Name: "Param " + name, Value: b.Params[name]})
	}
	return nil
}
