package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// RunFilter chooses runs; empty fields choose all.
type RunFilter struct {
	Job    string
	Key    string // of the period; needs Job to be fast
	State  string // running, complete, failed, timed_out, lost, drained, cancelled, skipped
	States []string
	Holder string    // exactly
	From   time.Time // started then or later
	To     time.Time // started before
	Before string    // [RunRecord.Cursor] of the last one of the page before
	Limit  int       // 1 to 1000; zero is 100
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

// Cursor says where a list of runs goes on after this one, see [RunFilter].
func (r RunRecord) Cursor() string { return cursor(r.StartedAt, r.ID.String()) }

// wanted are the states that the filter names; none are all.
func (f RunFilter) wanted() []string {
	if f.State == "" {
		return f.States
	}
	return append([]string{f.State}, f.States...)
}

// runsSQL goes by whichever index finds the newest of what is asked for without reading others: by the period, by the start,
// by job and state, by holder and state, or by the states that are few.
func runsSQL(f RunFilter) string {
	const (
		chosen = `(@job = '' or job = @job) and (@key = '' or key = @key) and (@holder = '' or holder = @holder)
   and (@from::timestamptz is null or started_at >= @from) and (@to::timestamptz is null or started_at < @to)
   and (@at::timestamptz is null or started_at <= @at and (started_at < @at or id > @id::text::uuid))`
		ofStates = `(cardinality(@states::text[]) = 0 or state = any (@states))`
		live     = `select * from pawl.runs where ended_at is null and ` + ofStates + ` and ` + chosen
		ended    = `
   union all
  select r.* from unnest(@ended::text[]) s (state) cross join lateral (select * from pawl.runs where `
		each = ` and ` + chosen + ` and ` + ofStateS + ` limit @most) r`
	)
	from := `pawl.runs where ` + ofStates + ` and ` + chosen
	states := f.wanted()
	switch {
	case f.Key != "":
	case len(states) == 1 && states[0] == stateRunning:
		from = `(` + live + `) r`
	case f.Job != "":
		from = `(` + live + ended + `job = @job` + each + `) r`
	case f.Holder != "":
		from = `(` + live + ended + `holder = @holder` + each + `) r`
	case len(states) > 0 && !slices.Contains(states, stateComplete):
		from = `(` + live + ended + `state not in ('running', 'complete')` + each + `) r`
	}
	return `
select ` + runColumns + `
  from ` + from + `
 order by started_at desc, id
 limit @most`
}

// Runs lists runs, the newest first. What it reads doesn't grow with the length of their history. A state that doesn't exist
// is an [ErrState], a Before that is no cursor an [ErrCursor].
func (h *History) Runs(ctx context.Context, f RunFilter) ([]RunRecord, error) {
	states, ended := f.wanted(), endStates()
	for _, s := range states {
		if err := oneOf("run", s, append([]string{stateRunning}, endStates()...)...); err != nil {
			return nil, err
		}
	}
	if len(states) > 0 {
		ended = slices.DeleteFunc(ended, func(s string) bool { return !slices.Contains(states, s) })
	}
	at, rest, err := readCursor(f.Before, 1)
	var id *string
	if err == nil && at != nil {
		id = &rest[0]
		_, err = uuid.Parse(*id)
	}
	if err != nil {
		return nil, fmt.Errorf("%w of a run: %q", ErrCursor, f.Before)
	}
	args := pgx.NamedArgs{
		"job": f.Job, "key": f.Key, "holder": f.Holder, "states": notNil(states), "ended": ended, "most": limited(f.Limit),
		"from": unlessZero(f.From), "to": unlessZero(f.To), "at": at, "id": id,
	}
	runs, err := collect[RunRecord](ctx, h, "runs", runsSQL(f), args)
	for i := range runs {
		utc(&runs[i].StartedAt, runs[i].EndedAt)
	}
	return runs, err
}
