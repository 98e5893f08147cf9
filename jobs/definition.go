package jobs

import (
	"encoding/json"
	"time"

	"pawl/jobs/schedule"
)

// definition is what is stored of a job: enough for any replica to plan it, with or without its function.
type definition struct {
	App           string           `json:"-"`
	Job           string           `json:"-"`
	Lock          string           `json:"-"`
	Schedule      string           `json:"schedule"`
	Timezone      string           `json:"timezone,omitempty"`
	Period        schedule.Kind    `json:"period,omitempty"`
	PeriodOffset  int              `json:"period_offset,omitempty"`
	CatchUp       schedule.CatchUp `json:"catch_up,omitempty"`
	CatchUpWindow time.Duration    `json:"catch_up_window,omitempty"`
	Runs          int              `json:"runs"`
}

func (j Job) definition(app string) definition {
	return definition{
		App: app, Job: j.Name, Lock: j.Lock, Schedule: j.Schedule, Timezone: j.Timezone, Period: j.Period,
		PeriodOffset: j.PeriodOffset, CatchUp: j.CatchUp, CatchUpWindow: j.CatchUpWindow, Runs: j.runs(),
	}
}

func (d definition) spec() schedule.Spec {
	return schedule.Spec{Expr: d.Schedule, Zone: d.Timezone, Period: d.Period, Offset: d.PeriodOffset}
}

// parse returns the schedule, with the job's name in the error.
func (d definition) parse() (schedule.Schedule, error) {
	s, err := schedule.Parse(d.spec())
	if err == nil {
		_, err = s.Policy(d.policy())
	}
	if err != nil {
		return s, &JobError{Job: d.Job, Err: err}
	}
	return s, nil
}

func (d definition) policy() schedule.Policy {
	return schedule.Policy{CatchUp: d.CatchUp, Window: d.CatchUpWindow}
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
