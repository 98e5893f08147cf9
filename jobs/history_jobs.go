package jobs

import (
	"context"
	"time"
)

// JobRecord is a job as it is stored, whether or not a worker knows it. Times are UTC.
type JobRecord struct {
	Job       string     `json:"job"`
	App       string     `json:"app"`
	Lock      string     `json:"lock"`
	Schedule  string     `json:"schedule"`
	Zone      string     `json:"zone"`
	Period    string     `json:"period"`
	NextAt    *time.Time `json:"next_at"`    // nil: nothing is due by itself
	Watermark time.Time  `json:"watermark"`  // planned up to here
	RetiredAt *time.Time `json:"retired_at"` // nil: not retired

	Kind        string     `json:"kind"`  // command, sql, http, reconcile; empty: Go
	Badge       string     `json:"badge"` // how its work is fenced, in words; empty: its own affair
	Owner       string     `json:"owner"`
	PausedAt    *time.Time `json:"paused_at"` // nil: not paused
	PausedBy    string     `json:"paused_by"`
	PauseNote   string     `json:"pause_note"`
	PausedUntil *time.Time `json:"paused_until"` // nil: until somebody resumes it
}

// jobColumns are what a JobRecord is read from.
const jobColumns = `job, app, lock, coalesce(definition ->> 'schedule', '') as schedule,
       coalesce(definition ->> 'timezone', '') as zone, coalesce(definition ->> 'period', '') as period,
       coalesce(definition ->> 'kind', '') as kind, coalesce(definition ->> 'badge', '') as badge,
       next_at, watermark, retired_at, coalesce(definition ->> 'owner', '') as owner, paused_at, coalesce(paused_by, '') as paused_by,
       coalesce(pause_note, '') as pause_note, paused_until`

// Jobs lists every stored job by name, retired ones too.
func (h *History) Jobs(ctx context.Context) ([]JobRecord, error) {
	const sql = `
select ` + jobColumns + `
  from pawl.schedules
 order by job`
	jobs, err := collect[JobRecord](ctx, h, "jobs", sql, nil)
	for i := range jobs {
		utc(jobs[i].NextAt, &jobs[i].Watermark, jobs[i].RetiredAt, jobs[i].PausedAt, jobs[i].PausedUntil)
	}
	return jobs, err
}
