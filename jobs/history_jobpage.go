package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/jobs/schedule"
)

// The groups of jobs that a [JobFilter] chooses by.
const (
	JobsAll     = "all"     // retired ones too
	JobsTrouble = "trouble" // dead, overdue, missed or late, and not retired
	JobsPaused  = "paused"  // and not retired
	JobsRetired = "retired"
)

// mostCounted is where counts of a job's periods stop.
const mostCounted = 10_001

// JobFilter chooses jobs; empty fields choose all.
type JobFilter struct {
	App    string
	State  string // one of [JobsAll], [JobsTrouble], [JobsPaused], [JobsRetired]
	Prefix string // of the name
	After  string // the last name of the page before
	Limit  int    // 1 to 1000; zero is 100
}

// JobSummary is a job with what its last periods and runs say of it. Counts stop at 10,001.
type JobSummary struct {
	JobRecord
	Words      string          `json:"words"`       // its schedule in English; "": no words for it, show the expression
	Definition json.RawMessage `json:"definition"`  // as it is stored
	Last14     []PeriodMark    `json:"last"`        // its last periods, at most 14, the newest last
	Health     string          `json:"health"`      // ok, late, overdue, missed, dead, paused, retired, running, waiting
	HealthText string          `json:"health_text"` // why, and of which period; "" when there is nothing to say
	LastRun    *RunRecord      `json:"last_run"`    // the last that has started; nil: none is kept
	Open       int             `json:"open"`        // periods owed and not begun, those that wait for something too
	Dead       int             `json:"dead"`        // of the newest 10,001 that did not end well
	Missed     int             `json:"missed"`      // of the same; an unbroken stretch of short periods is one
	Next       []time.Time     `json:"next"`        // the next ticks, at most 5, in its zone
	Median     time.Duration   `json:"median_ns"`   // of its last 20 complete runs; zero: there is none
}

// PeriodMark is one period in a row of them.
type PeriodMark struct {
	Key         string    `json:"key"`
	State       string    `json:"state"` // complete, late (begun too late, or not yet), missed, dead, running, open, held, skipped, cancelled
	ScheduledAt time.Time `json:"scheduled_at"`
}

// jobsSQL lists jobs by name. Those in trouble are found here by what could be trouble; judge has the last word.
func jobsSQL(state string) string {
	chosen := ""
	switch state {
	case JobsPaused:
		chosen = ` and s.paused_at is not null and s.retired_at is null`
	case JobsRetired:
		chosen = ` and s.retired_at is not null`
	case JobsTrouble:
		chosen = ` and s.retired_at is null and (
   exists (select from pawl.periods p where p.job = s.job and ` + endedBadly + ` and p.state in ('dead', 'missed') and p.scheduled_at >= (
     select min(scheduled_at) from (select scheduled_at from pawl.periods where job = s.job` + notShards + ` order by scheduled_at desc limit @marks) o))
   or exists (select from (select ended_at from pawl.periods where job = s.job` + notShards + ` order by scheduled_at desc limit @marks) p where p.ended_at is null)
   or exists (select from pawl.periods p where p.job = s.job and waits is not null)
   or exists (select from pawl.periods p where p.lock = s.lock and p.job = s.job and ` + unfinished + `))`
	}
	return `
select ` + jobColumns + `, definition, clock_timestamp() as now
  from pawl.schedules s
 where (@app = '' or app = @app) and job > @after and job >= @prefix and starts_with(job, @prefix)` + chosen + `
 order by job limit @most`
}

// jobRow is one row of jobsSQL, with what it is a definition of.
type jobRow struct {
	JobRecord
	Definition []byte
	Now        time.Time

	plan     definition
	schedule schedule.Schedule
	planErr  error // it can't be read: another version's, perhaps
}

// JobPage lists jobs by name, each with what its last periods say. What it reads grows with the number of jobs asked for, not
// with the length of their history. A State that doesn't exist is an [ErrState].
func (h *History) JobPage(ctx context.Context, f JobFilter) (page []JobSummary, err error) {
	if err := oneOf("job", f.State, JobsAll, JobsTrouble, JobsPaused, JobsRetired); err != nil {
		return nil, err
	}
	page = []JobSummary{}
	most := limited(f.Limit)
	err = h.read(ctx, "jobs", func(ctx context.Context, tx pgx.Tx) error {
		for after := f.After; ; {
			args := pgx.NamedArgs{"app": f.App, "prefix": f.Prefix, "after": after, "most": most, "marks": marksKept}
			rows, err := h.jobRows(ctx, tx, jobsSQL(f.State), args)
			if err != nil {
				return err
			}
			found, err := summarize(ctx, tx, rows)
			if err != nil {
				return err
			}
			for _, s := range found {
				if f.State != JobsTrouble || s.inTrouble() {
					page = append(page, s)
				}
			}
			if len(rows) < most || len(page) >= most {
				page = page[:min(len(page), most)]
				return nil
			}
			after = rows[len(rows)-1].Job
		}
	})
	return page, err
}

// Job returns one job with what its last periods say, or [ErrUnknownJob].
func (h *History) Job(ctx context.Context, name string) (s JobSummary, err error) {
	const one = `
select ` + jobColumns + `, definition, clock_timestamp() as now from pawl.schedules where job = @job`
	var found []JobSummary
	err = h.read(ctx, "job", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := h.jobRows(ctx, tx, one, pgx.NamedArgs{"job": name})
		if err == nil {
			found, err = summarize(ctx, tx, rows)
		}
		return err
	})
	switch {
	case err != nil:
		return s, err
	case len(found) == 0:
		return s, unknownJob(name)
	}
	return found[0], nil
}

func unknownJob(name string) error {
	return fmt.Errorf("%w %q: no schedule of that name is stored; list them with: pawl job ls", ErrUnknownJob, name)
}

func (h *History) jobRows(ctx context.Context, tx pgx.Tx, sql string, args pgx.NamedArgs) ([]jobRow, error) {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	jobs, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[jobRow])
	for i := range jobs {
		j := &jobs[i]
		utc(j.NextAt, &j.Watermark, j.RetiredAt, j.PausedAt, j.PausedUntil, &j.Now)
		h.readPlan(j)
	}
	return jobs, err
}

// readPlan parses the stored definition. Schedules are kept parsed: that takes longer than all else that is done with one.
func (h *History) readPlan(j *jobRow) {
	p := planned{stored: j.Definition}
	if j.planErr = json.Unmarshal(j.Definition, &p.definition); j.planErr != nil {
		return
	}
	j.plan = p.definition
	j.schedule, j.planErr = h.plans.get(&p)
}

// next lists the ticks that come, in the schedule's zone.
func (j *jobRow) next(n int) []time.Time {
	next := make([]time.Time, 0, n)
	if j.planErr != nil || j.RetiredAt != nil {
		return next
	}
	for at := j.schedule.Next(j.Now); !at.IsZero() && len(next) < n; at = j.schedule.Next(at) {
		next = append(next, at.In(j.schedule.Zone()))
	}
	return next
}

// words is the schedule in English.
func (j *jobRow) words() string {
	if j.planErr != nil {
		return ""
	}
	return j.schedule.Words()
}
