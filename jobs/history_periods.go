package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// PeriodFilter chooses periods; empty fields choose all.
type PeriodFilter struct {
	Job    string
	State  string // open, running, complete, dead, missed, skipped, held, cancelled
	States []string
	From   time.Time // scheduled then or later
	To     time.Time // scheduled before
	Before string    // [PeriodRecord.Cursor] of the last one of the page before
	Limit  int       // 1 to 1000; zero is 100
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

	Params json.RawMessage `json:"params"` // what was given to it, an object by name
}

// ParamWords is what the period was given, as name=value, sorted; "" for nothing.
func (p PeriodRecord) ParamWords() string { return paramWords(p.Params) }

// Which periods there are, each kind by an index of its own: a state alone would be looked for in all of the history.
const (
	unfinished = `ended_at is null and waits is null`
	waiting    = `waits is not null` // also what is dead until somebody decides
	endedBadly = `ended_at is not null and reason not in ('overlap', 'exit_code')`
	wasSkipped = `ended_at is not null and reason in ('overlap', 'exit_code')`

	notShards = ` and parent is null` // lists are of periods; [History.Shards] has the others
)

// Cursor says where a list of periods goes on after this one, see [PeriodFilter].
func (p PeriodRecord) Cursor() string {
	return cursor(p.ScheduledAt, p.Job, strconv.Itoa(p.Revision), p.Key)
}

// wanted are the states that the filter names; none are all.
func (f PeriodFilter) wanted() []string {
	if f.State == "" {
		return f.States
	}
	return append([]string{f.State}, f.States...)
}

// kinds are the kinds of periods, by index, that may be in the states. No period is of two, unless it is of all.
func kinds(states []string) []string {
	var kinds []string
	for _, state := range states {
		of := []string{"true"}
		switch state {
		case "open", "running":
			of = []string{unfinished, waiting + " and ended_at is null"}
		case "held":
			of = []string{unfinished, waiting + " and ended_at is null", endedBadly}
		case "dead", "missed", "cancelled":
			of = []string{endedBadly}
		case "skipped":
			of = []string{endedBadly, wasSkipped}
		}
		kinds = append(kinds, of...)
	}
	if len(kinds) == 0 || slices.Contains(kinds, "true") {
		return []string{"true"}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// periodsSQL asks each job for its latest periods: of all kinds that may be in the states.
func periodsSQL(f PeriodFilter) string {
	const chosen = `(cardinality(@states::text[]) = 0 or state = any (@states))
       and (@from::timestamptz is null or scheduled_at >= @from) and (@to::timestamptz is null or scheduled_at < @to)
       and (@at::timestamptz is null or scheduled_at <= @at and (scheduled_at < @at or (job, key) > (@lastjob, @lastkey)
            or job = @lastjob and key = @lastkey and revision < @lastrevision::int))`
	of := `(select job from pawl.schedules)`
	if f.Job != "" {
		of = `(select @job::text as job)`
	}
	var parts []string
	for _, kind := range kinds(f.wanted()) {
		parts = append(parts, `
  select p.* from `+of+` j cross join lateral (
    select * from pawl.periods where job = j.job and `+kind+notShards+` and `+chosen+`
     order by scheduled_at desc, key, revision desc limit @most) p`)
	}
	return `
select ` + periodColumns + `
  from (` + strings.Join(parts, "\n   union all") + `) p
 order by scheduled_at desc, job, key, revision desc
 limit @most`
}

// periodColumns are what a PeriodRecord is read from.
const periodColumns = `job, key, revision, state, coalesce(reason, '') as reason, start_at as start, end_at as "end", scheduled_at,
       attempts, case when state = 'complete' then ended_at end as completed_at, token,
       origin, coalesce(waits, '') as waits, coalesce(blocked_by, '') as blocked_by, ticks, last_at, not_before, due_at, coalesce(params, '{}') as params`

// Periods lists periods, the latest scheduled first. What it reads grows with the number of jobs, not with the length of
// their history. A state that doesn't exist is an [ErrState], a Before that is no cursor an [ErrCursor].
func (h *History) Periods(ctx context.Context, f PeriodFilter) ([]PeriodRecord, error) {
	for _, s := range f.wanted() {
		if err := oneOf("period", s, "open", "running", "complete", "dead", "missed", "skipped", "held", "cancelled"); err != nil {
			return nil, err
		}
	}
	at, rest, err := readCursor(f.Before, 3)
	revision := 0
	if err == nil && at != nil {
		revision, err = strconv.Atoi(rest[1])
	}
	if err != nil {
		return nil, fmt.Errorf("%w of a period: %q", ErrCursor, f.Before)
	}
	args := pgx.NamedArgs{
		"job": f.Job, "states": notNil(f.wanted()), "most": limited(f.Limit), "from": unlessZero(f.From), "to": unlessZero(f.To),
		"at": at, "lastjob": rest[0], "lastrevision": revision, "lastkey": rest[2],
	}
	periods, err := collect[PeriodRecord](ctx, h, "periods", periodsSQL(f), args)
	for i := range periods {
		periods[i].utc()
	}
	return periods, err
}

func (p *PeriodRecord) utc() {
	utc(&p.Start, &p.End, &p.ScheduledAt, p.CompletedAt, p.LastAt, p.NotBefore, p.DueAt)
}
