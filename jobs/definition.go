package jobs

import (
	"cmp"
	"encoding/json"
	"time"

	"pawl/jobs/schedule"
)

// definition is what is stored of a job: enough for any replica to plan it, with or without its function.
type definition struct {
	App           string           `json:"-"`
	Job           string           `json:"-"`
	Lock          string           `json:"-"`
	Kind          string           `json:"kind,omitempty"`
	Badge         string           `json:"badge,omitempty"`
	Owner         string           `json:"owner,omitempty"`
	Schedule      string           `json:"schedule"`
	Seconds       bool             `json:"seconds,omitempty"`
	Timezone      string           `json:"timezone,omitempty"`
	Gap           string           `json:"dst_gap,omitempty"`
	DSTOverlap    string           `json:"dst_overlap,omitempty"`
	DayMatch      string           `json:"day_match,omitempty"`
	Period        schedule.Kind    `json:"period,omitempty"`
	PeriodOffset  int              `json:"period_offset,omitempty"`
	EveryOffset   time.Duration    `json:"every_offset,omitempty"`
	Jitter        time.Duration    `json:"jitter,omitempty"`
	CatchUp       schedule.CatchUp `json:"catch_up,omitempty"`
	CatchUpWindow time.Duration    `json:"catch_up_window,omitempty"`
	CatchUpMax    int              `json:"catch_up_max,omitempty"`
	Overlap       string           `json:"overlap,omitempty"`
	StartWithin   time.Duration    `json:"start_within,omitempty"`
	LateAfter     time.Duration    `json:"late_after,omitempty"`
	DueBy         string           `json:"due_by,omitempty"`
	OnDead        string           `json:"on_dead,omitempty"`
	Needs         []string         `json:"needs,omitempty"`
	Alerts        []string         `json:"alerts,omitzero"`
	Timeout       time.Duration    `json:"timeout,omitempty"`
	Runs          int              `json:"runs"`
	Outbox        bool             `json:"outbox,omitempty"` // pawl.enqueue owes its periods, each under the lock of its message's key
	KeepRuns      time.Duration    `json:"keep_runs,omitempty"`
	KeepOutput    time.Duration    `json:"keep_output,omitempty"`

	Sends  []string              `json:"sends,omitempty"`
	Params map[string]paramShape `json:"params,omitempty"`
	Shards int                   `json:"shards,omitempty"`
	By     string                `json:"shards_by,omitempty"` // in words
}

func (j Job) definition(app string) definition {
	d := definition{
		App: cmp.Or(j.app, app), Job: j.Name, Lock: j.Lock, Owner: j.Owner, Kind: j.Kind, Badge: j.Badge, Schedule: j.Schedule, Seconds: j.Seconds, Timezone: j.Timezone,
		Gap: j.DST.Gap, DSTOverlap: j.DST.Overlap, DayMatch: j.DayMatch, Period: j.Period, PeriodOffset: j.PeriodOffset,
		EveryOffset: j.EveryOffset, Jitter: j.Jitter, CatchUp: j.CatchUp, CatchUpWindow: j.CatchUpWindow, CatchUpMax: j.CatchUpMax,
		Overlap: j.Overlap, StartWithin: j.StartWithin, LateAfter: j.LateAfter, DueBy: j.DueBy, OnDead: j.OnDead,
		Alerts: j.Alerts, Timeout: j.Timeout, Runs: j.runs(), Outbox: j.outbox, Sends: j.Sends, Shards: j.Shards, By: j.ShardsBy,
		KeepRuns: j.Retention.Runs, KeepOutput: j.Retention.Output,
	}
	for _, n := range j.Needs {
		d.Needs = append(d.Needs, n.Job)
	}
	for name, p := range j.Params {
		if d.Params == nil {
			d.Params = map[string]paramShape{}
		}
		d.Params[name] = p.shape()
	}
	return d
}

func (d definition) spec() schedule.Spec {
	return schedule.Spec{
		Expr: d.Schedule, Zone: d.Timezone, Period: d.Period, Offset: d.PeriodOffset, Seconds: d.Seconds, DayMatch: d.DayMatch,
		Gap: d.Gap, Overlap: d.DSTOverlap, EveryOffset: d.EveryOffset, Jitter: d.Jitter,
	}
}

// parse returns the schedule, with the job's name in the error.
func (d definition) parse() (schedule.Schedule, error) {
	s, err := schedule.Parse(d.spec())
	if err == nil {
		_, err = s.Policy(d.policy())
	}
	if err == nil {
		_, err = s.ParseDueBy(d.DueBy)
	}
	if err != nil {
		return s, &JobError{Job: d.Job, Err: err}
	}
	return s, nil
}

func (d definition) policy() schedule.Policy {
	return schedule.Policy{CatchUp: d.CatchUp, Window: d.CatchUpWindow, StartWithin: d.StartWithin, Max: d.CatchUpMax}
}

// lockOf is the lock under which a period runs.
func (d definition) lockOf(key string) string {
	if d.Overlap == OverlapAllow {
		return d.Lock + "#" + key
	}
	return d.Lock
}

// same reports whether two definitions of a job plan alike.
func (d definition) same(o definition) bool {
	return d.Lock == o.Lock && string(d.json()) == string(o.json())
}

func (d definition) json() []byte {
	b, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return b
}

// JobError is an error of one job.
type JobError struct {
	Job string
	Err error
}

// Error implements error.
func (e *JobError) Error() string { return `jobs: job "` + e.Job + `": ` + e.Err.Error() }

// Unwrap returns the error.
func (e *JobError) Unwrap() error { return e.Err }
