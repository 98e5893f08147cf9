package jobs

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// RunFilter chooses runs; empty fields choose all.
type RunFilter struct {
	Job   string
	Key   string // of the period; needs Job to be fast
	State string // running, complete, failed, timed_out, lost, drained, cancelled, skipped
	Limit int    // 1 to 1000; zero is 100
}

// RunRecord is one attempt at a period. Times are UTC by the database's clock; what is not known is nil or empty.
type RunRecord struct {
	ID        uuid.UUID  `json:"id"`
	Job       string     `json:"job"`
	Key       string     `json:"key"`
	Revision  int        `json:"revision"`
	Attempt   int        `json:"attempt"`
	State     string     `json:"state"`
	Lock      string     `json:"lock"`
	Token     int64      `json:"token"`
	Holder    string     `json:"holder"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	Done      *int64     `json:"done"`
	Total     *int64     `json:"total"`
	Error     string     `json:"error"`
	Resumed   bool       `json:"-"` // found a checkpoint of an earlier run
}

// Runs lists runs, the newest first. A state that doesn't exist is an [ErrState].
func (h *History) Runs(ctx context.Context, f RunFilter) ([]RunRecord, error) {
	const sql = `
select id, job, key, revision, attempt, state, lock, token, coalesce(holder, '') as holder, started_at, ended_at,
       done, total, coalesce(error, '') as error, resumed
  from pawl.runs
 where (@job = '' or job = @job) and (@key = '' or key = @key) and (@state = '' or state = @state)
 order by started_at desc, id
 limit @most`
	err := oneOf("run", f.State, "running", "complete", "failed", "timed_out", "lost", "drained", "cancelled", "skipped")
	if err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{"job": f.Job, "key": f.Key, "state": f.State, "most": limited(f.Limit)}
	runs, err := collect[RunRecord](ctx, h, "runs", sql, args)
	for i := range runs {
		utc(&runs[i].StartedAt, runs[i].EndedAt)
	}
	return runs, err
}
