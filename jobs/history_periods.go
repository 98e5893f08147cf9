package jobs

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// PeriodFilter chooses periods; empty fields choose all.
type PeriodFilter struct {
	Job   string
	State string // open, running, complete, dead, missed, skipped, held, cancelled
	Limit int    // 1 to 1000; zero is 100
}

// PeriodRecord is one thing owed. Times are UTC by the database's clock; what is not known is nil or empty.
type PeriodRecord struct {
	Job         string     `json:"job"`
	Key         string     `json:"key"`
	Revision    int        `json:"revision"`
	State       string     `json:"state"`
	Reason      string     `json:"reason"`
	Start       time.Time  `json:"start"`
	End         time.Time  `json:"end"`
	ScheduledAt time.Time  `json:"scheduled_at"`
	Attempts    int        `json:"attempts"`
	CompletedAt *time.Time `json:"completed_at"` // nil unless complete
	Token       *int64     `json:"token"`        // of the run that has it or had it last

	Origin    string     `json:"origin"`     // schedule, trigger, backfill, rerun
	Waits     string     `json:"waits"`      // why it may not run: paused, dead (an earlier one), needs; of a dead one: decision, pause
	BlockedBy string     `json:"blocked_by"` // which period it waits behind, or was skipped for
	Ticks     int        `json:"ticks"`      // how many ticks the row stands for
	LastAt    *time.Time `json:"last_at"`    // the last of them; nil if it is one
	NotBefore *time.Time `json:"not_before"` // its jitter, or when it is retried
	DueAt     *time.Time `json:"due_at"`     // nil: no due_by
}

// Which periods there are, each kind by an index of its own: a state alone would be looked for in all of the history.
const (
	unfinished = `ended_at is null and waits is null`
	waiting    = `waits is not null` // also what is dead until somebody decides
	endedBadly = `ended_at is not null and reason not in ('overlap', 'exit_code')`
	wasSkipped = `ended_at is not null and reason in ('overlap', 'exit_code')`
)

// periodsSQL asks each job for its latest periods: of all kinds that may be in the state.
func periodsSQL(f PeriodFilter) string {
	kinds := []string{"true"}
	switch f.State {
	case "open", "running":
		kinds = []string{unfinished, waiting}
	case "held":
		kinds = []string{unfinished, waiting + " and ended_at is null", endedBadly}
	case "dead", "missed", "cancelled":
		kinds = []string{endedBadly}
	case "skipped":
		kinds = []string{endedBadly, wasSkipped}
	}
	of := `(select job from pawl.schedules)`
	if f.Job != "" {
		of = `(select @job::text as job)`
	}
	latest := func(kind string) string {
		return `
  select p.* from ` + of + ` j cross join lateral (
    select * from pawl.periods where job = j.job and ` + kind + ` and (@state = '' or state = @state)
     order by scheduled_at desc limit @most) p`
	}
	parts := make([]string, len(kinds))
	for i, kind := range kinds {
		parts[i] = latest(kind)
	}
	return `
select job, key, revision, state, coalesce(reason, '') as reason, start_at as start, end_at as "end", scheduled_at,
       attempts, case when state = 'complete' then ended_at end as completed_at, token,
       origin, coalesce(waits, '') as waits, coalesce(blocked_by, '') as blocked_by, ticks, last_at, not_before, due_at
  from (` + strings.Join(parts, "\n   union all") + `) p
 order by scheduled_at desc, job, key, revision desc
 limit @most`
}

// Periods lists periods, the latest scheduled first. What it reads grows with the number of jobs, not with the length of their history. A state that doesn't exist is an [ErrState].
func (h *History) Periods(ctx context.Context, f PeriodFilter) ([]PeriodRecord, error) {
	err := oneOf("period", f.State, "open", "running", "complete", "dead", "missed", "skipped", "held", "cancelled")
	if err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{"job": f.Job, "state": f.State, "most": limited(f.Limit)}
	periods, err := collect[PeriodRecord](ctx, h, "periods", periodsSQL(f), args)
	for i := range periods {
		p := &periods[i]
		utc(&p.Start, &p.End, &p.ScheduledAt, p.CompletedAt, p.LastAt, p.NotBefore, p.DueAt)
	}
	return periods, err
}
