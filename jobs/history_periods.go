package jobs

import (
	"context"
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

// Periods lists periods, the latest scheduled first. A state that doesn't exist is an [ErrState].
func (h *History) Periods(ctx context.Context, f PeriodFilter) ([]PeriodRecord, error) {
	const sql = `
select job, key, revision, state, coalesce(reason, '') as reason, start_at as start, end_at as "end", scheduled_at,
       attempts, case when state = 'complete' then ended_at end as completed_at, token,
       origin, coalesce(waits, '') as waits, coalesce(blocked_by, '') as blocked_by, ticks, last_at, not_before, due_at
  from pawl.periods
 where (@job = '' or job = @job) and (@state = '' or state = @state)
 order by scheduled_at desc, job, key, revision desc
 limit @most`
	err := oneOf("period", f.State, "open", "running", "complete", "dead", "missed", "skipped", "held", "cancelled")
	if err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{"job": f.Job, "state": f.State, "most": limited(f.Limit)}
	periods, err := collect[PeriodRecord](ctx, h, "periods", sql, args)
	for i := range periods {
		p := &periods[i]
		utc(&p.Start, &p.End, &p.ScheduledAt, p.CompletedAt, p.LastAt, p.NotBefore, p.DueAt)
	}
	return periods, err
}
