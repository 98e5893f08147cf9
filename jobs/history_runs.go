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

// runColumns are what a RunRecord is read from.
const runColumns = `id, job, key, revision, attempt, state, lock, token, coalesce(holder, '') as holder, started_at, ended_at,
       done, total, coalesce(error, '') as error, resumed`

// endStates are those of a run that has ended.
func endStates() []string {
	return []string{stateComplete, stateFailed, stateTimedOut, stateLost, stateDrained, stateCancelled, stateSkipped}
}

// runsSQL goes by whichever index finds the newest of what is asked for without reading others: by the period, by the start,
// or by job and state.
func runsSQL(f RunFilter) string {
	const chosen = `(@job = '' or job = @job) and (@key = '' or key = @key) and (@state = '' or state = @state)`
	from := `pawl.runs where ` + chosen
	switch {
	case f.Key != "":
	case f.State == stateRunning:
		from += ` and ended_at is null`
	case f.Job != "" || f.State != "":
		from = `(
  select * from pawl.runs where ended_at is null and ` + chosen + `
   union all
  select r.* from (select job from pawl.schedules where @job = '' union select @job where @job <> '') j, unnest(@states::text[]) s (state)
   cross join lateral (select * from pawl.runs where job = j.job and state = s.state and state <> 'running' order by started_at desc limit @most) r
   where @state in ('', s.state)) r`
	}
	return `
select ` + runColumns + `
  from ` + from + `
 order by started_at desc, id
 limit @most`
}

// Runs lists runs, the newest first. What it reads grows with the number of jobs, not with the length of their history. A state that doesn't exist is an [ErrState].
func (h *History) Runs(ctx context.Context, f RunFilter) ([]RunRecord, error) {
	err := oneOf("run", f.State, append([]string{stateRunning}, endStates()...)...)
	if err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{"job": f.Job, "key": f.Key, "state": f.State, "most": limited(f.Limit), "states": endStates()}
	runs, err := collect[RunRecord](ctx, h, "runs", runsSQL(f), args)
	for i := range runs {
		utc(&runs[i].StartedAt, runs[i].EndedAt)
	}
	return runs, err
}
