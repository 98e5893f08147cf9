package ui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"pawl/jobs"
	"pawl/jobs/schedule"
)

// jobFacts are what is to be known of a job before anything is done to it.
func jobFacts(j jobs.JobSummary) []fact {
	facts := []fact{{Name: "Schedule", Value: firstOf(j.Words, j.Schedule)}, {Name: "State", Value: firstOf(j.HealthText, j.Health)}}
	if j.LastRun != nil {
		facts = append(facts, fact{Name: "Last run began", At: &j.LastRun.StartedAt, Value: "and " + ended(j.LastRun.State), Href: addr("ui", "runs", j.LastRun.ID.String())})
	}
	if j.NextAt != nil && j.PausedAt == nil {
		facts = append(facts, fact{Name: "Next", At: j.NextAt})
	}
	return append(facts, fact{Name: "Owed", Value: counted(j.Open), Href: addr("ui", "periods", j.Job) + "?state=open"})
}

// ended is a run's state as the end of a sentence.
func ended(state string) string {
	switch state {
	case "running":
		return "is running"
	case "complete":
		return "is complete"
	}
	return strings.ReplaceAll(state, "_", " ")
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// live is a job that isn't retired.
func (u *UI) live(ctx context.Context, name string) (jobs.JobSummary, error) {
	j, err := u.cfg.Jobs.Job(ctx, name)
	if err == nil && j.RetiredAt != nil {
		err = stale("This job is retired: it owes nothing any more, and nothing can be done to it.", addr("ui", "jobs", name), name)
	}
	return j, err
}

func jobAct(verb, job string) *actPage {
	back := crumb{addr("ui", "jobs", job), job}
	return &actPage{Title: verb + " ", Of: job, Button: verb + " " + job, Crumbs: []crumb{{"/ui/jobs", "Jobs"}, back}, Back: crumb{back.Path, "Leave it"}}
}

var pauseSteps = []string{
	"What it owes waits, and ticks from now on are held.",
	"A run that is under way goes on to its end. What a person triggers or reruns meanwhile runs all the same.",
}

// pause keeps a job from starting.
func (u *UI) pause(q *request) error {
	job := q.args["job"]
	return u.act(q, func(ctx context.Context) (*actPage, error) {
		j, err := u.live(ctx, job)
		if err != nil {
			return nil, err
		}
		if j.PausedAt != nil {
			return nil, stale("Somebody has paused it already: "+j.PausedBy+".", addr("ui", "jobs", job), job)
		}
		a := jobAct("Pause", job)
		a.Steps, a.Facts, a.Fields, a.Need, a.Data = pauseSteps, jobFacts(j), "pause-fields", 1, zoneOf(q.r)
		return a, nil
	}, func(ctx context.Context) (string, error) {
		c, err := q.pauseConfig()
		if err != nil {
			return "", err
		}
		return addr("ui", "jobs", job), sooner(u.cfg.Acts.Pause(ctx, job, c))
	})
}

// pauseConfig reads a form of a pause.
func (q *request) pauseConfig() (c jobs.PauseConfig, err error) {
	if c.Note, err = q.reason(1); err != nil {
		return c, err
	}
	c.Actor, c.Owe = q.user.Name, schedule.CatchUp(q.r.PostForm.Get("owe"))
	if text := q.r.PostForm.Get("until"); text != "" {
		t, ok := readTime(text, zoneOf(q.r))
		if !ok {
			return c, &fieldError{"until", "That is no time: give one such as 2026-09-17 06:00, or leave it empty."}
		}
		c.Until = t
	}
	return c, nil
}

// sooner says of a time that has passed that it is the field's.
func sooner(err error) error {
	if config := (*jobs.ConfigError)(nil); err != nil && asConfig(err, &config) && config.Field == "Until" {
		return &fieldError{"until", "That time is over: give one that is still to come, or leave it empty."}
	}
	return err
}

// resume ends a pause.
func (u *UI) resume(q *request) error {
	job := q.args["job"]
	return u.act(q, func(ctx context.Context) (*actPage, error) {
		j, err := u.live(ctx, job)
		if err != nil {
			return nil, err
		}
		if j.PausedAt == nil {
			return nil, stale("It is not paused.", addr("ui", "jobs", job), job)
		}
		a := jobAct("Resume", job)
		a.Steps = []string{"What was owed before the pause goes on.", "Of the ticks that came meanwhile you say what is owed. The others stay held, and can be backfilled later."}
		a.Facts = append([]fact{{Name: "Paused by", Value: j.PausedBy}, {Name: "Since", At: j.PausedAt}, {Name: "Why", Value: firstOf(j.PauseNote, "nobody said")}}, jobFacts(j)...)
		if j.PausedUntil != nil {
			a.Facts = append(a.Facts, fact{Name: "Until", At: j.PausedUntil})
		}
		a.Fields, a.Optional, a.Hidden = "owe-fields", true, []pair{{"paused_at", j.PausedAt.UTC().Format(time.RFC3339Nano)}}
		return a, nil
	}, func(ctx context.Context) (string, error) {
		since, err := time.Parse(time.RFC3339Nano, q.r.PostForm.Get("paused_at"))
		if err != nil {
			return "", badForm()
		}
		reason, err := q.reason(0)
		if err != nil {
			return "", err
		}
		by := jobs.By{Actor: q.user.Name, Reason: reason, Seen: jobs.Seen{PausedAt: since}}
		_, err = u.cfg.Acts.Resume(ctx, job, by, schedule.CatchUp(q.r.PostForm.Get("owe")))
		return addr("ui", "jobs", job), err
	})
}

// runNow makes a job's current period owed now.
func (u *UI) runNow(q *request) error {
	job := q.args["job"]
	return u.act(q, func(ctx context.Context) (*actPage, error) { return u.runPage(ctx, job) }, func(ctx context.Context) (string, error) {
		reason, err := q.reason(0)
		if err != nil {
			return "", err
		}
		seen := jobs.Seen{Key: q.r.PostForm.Get("key"), State: q.r.PostForm.Get("state")}
		if seen.Key == "" || seen.State == "" {
			return "", badForm()
		}
		if seen.State == absent {
			seen.State, seen.Absent = "", true
		}
		c := jobs.TriggerConfig{Actor: q.user.Name, Reason: reason, Seen: seen, Params: params(q.r.PostForm)}
		_, err = u.cfg.Acts.Trigger(ctx, job, c)
		if bad := (*jobs.ParamError)(nil); errors.As(err, &bad) {
			return "", badParam(bad)
		}
		return addr("ui", "jobs", job), err
	})
}

const absent = "absent" // the state of a period that nothing is known of, in a form

func (u *UI) runPage(ctx context.Context, job string) (*actPage, error) {
	j, err := u.live(ctx, job)
	if err != nil {
		return nil, err
	}
	key, err := u.cfg.Jobs.Current(ctx, job)
	if err != nil {
		return nil, err
	}
	a := jobAct("Run", job)
	a.Button, a.Optional, a.Facts = "Run "+job+" now", true, jobFacts(j)
	if declared := paramsOf(j.Definition); len(declared) > 0 {
		a.Fields, a.Params = "param-fields", declared
	}
	if key == "" {
		a.Hidden = []pair{{"key", ulid.Make().String()}, {"state", absent}} // one form, one run
		a.Steps = []string{"A period of its own is owed at once, whatever else is.", "It runs as soon as a worker is free and the lock " + j.Lock + " is."}
		return a, nil
	}
	p, state, err := u.known(ctx, job, key)
	if err != nil {
		return nil, err
	}
	switch state {
	case "complete":
		return nil, stale("The current period, "+key+", is complete, so it doesn’t run again by itself: rerun it, with a reason.", addr("ui", "periods", job, key, "rerun"), "Rerun "+key)
	case "running":
		return nil, stale("The current period, "+key+", runs already.", addr("ui", "jobs", job), job)
	}
	a.Steps = []string{fmt.Sprintf("The current period, %s, is owed at once, whatever the schedule says.", key), "It runs as soon as a worker is free and the lock " + j.Lock + " is."}
	a.Facts = append([]fact{{Name: "Period", Value: key}, {Name: "It is", Value: firstOf(state, "not owed yet")}}, a.Facts...)
	a.Hidden = []pair{{"key", key}, {"state", firstOf(p.State, absent)}}
	return a, nil
}
