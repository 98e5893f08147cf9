package jobs

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// marksKept is how many periods a job's row shows.
const marksKept = 14

const (
	// What a marked is read from: periods p. What was retried began with its first run, not with the last.
	markedColumns = `
p.job, p.key, p.revision, p.state, coalesce(p.reason, '') as reason, p.scheduled_at, coalesce(p.waits, '') as waits,
       coalesce(p.blocked_by, '') as blocked_by, p.attempts::int, p.ticks, p.not_before, p.late_at, p.due_at, p.ended_at,
       p.origin in ('schedule', 'trigger') as timely,
       case when p.attempts > 1 and p.started_at > p.late_at
            then (select r.started_at from pawl.runs r where r.job = p.job and r.key = p.key and r.revision = p.revision order by r.attempt limit 1)
            else p.started_at end as started_at`

	// A job's newest periods (a rerun is a row of its own, so more than are shown), the first of its line, and what waits.
	marksSQL = `
select ` + markedColumns + `, p.newest
  from unnest(@jobs::text[], @locks::text[]) j (job, lock) cross join lateral (
    (select *, true as newest from pawl.periods where job = j.job` + notShards + ` order by scheduled_at desc, key desc, revision desc limit 2 * @marks)
    union all
    (select h.*, false from (select * from pawl.periods where lock = j.lock and ` + unfinished + notShards + `
       order by priority, scheduled_at, job, key, revision limit 100) h where h.job = j.job limit @marks)
    union all
    (select *, false from pawl.periods where job = j.job and ` + waiting + ` order by scheduled_at limit @marks)) p`

	// The newest run of each state, by the index that has them.
	lastRunsSQL = `
select distinct on (r.job) ` + runColumns + `
  from (select * from pawl.runs where ended_at is null and job = any (@jobs)
         union all
        select r.* from unnest(@jobs::text[]) j (job), unnest(@states::text[]) s (state)
         cross join lateral (select * from pawl.runs where job = j.job and ` + ofStateS + ` limit 1) r) r
 order by r.job, r.started_at desc, r.id`

	mediansSQL = `
select j.job, extract(epoch from m.usual)::float8
  from unnest(@jobs::text[]) j (job) cross join lateral (
    select percentile_cont(0.5) within group (order by r.ended_at - r.started_at) as usual
      from (select ended_at, started_at from pawl.runs where job = j.job and ` + ofComplete + ` limit 20) r) m
 where m.usual is not null`

	// Open periods by the locks that have some, whatever a job's lock is called now.
	openSQL = openLocks + `
select o.job, count(*) from (
  select p.job from lanes l cross join lateral (select job, state from pawl.periods where lock = l.lock and ` + unfinished + notShards + ` limit @most) p
   where p.state = 'open' and p.job = any (@jobs)
  union all
  select p.job from unnest(@jobs::text[]) j (job) cross join lateral (
    select job, state from pawl.periods where job = j.job and ` + waiting + ` and ended_at is null limit @most) p where p.state = 'open') o
 group by o.job`

	badSQL = `
select j.job, count(*) filter (where p.state = 'dead'), count(*) filter (where p.state = 'missed')
  from unnest(@jobs::text[]) j (job) cross join lateral (
    select state from pawl.periods where job = j.job and ` + endedBadly + notShards + ` order by scheduled_at desc limit @most) p
 group by j.job`

	// A range of one state, and its order, leave no other index than that of job and state: the newest runs of all jobs may
	// hold none of a job that is idle.
	ofStateS   = `state between s.state and s.state and state <> 'running' order by state desc, started_at desc, id`
	ofComplete = `state between 'complete' and 'complete' and state <> 'running' order by state desc, started_at desc, id`

	// openLocks finds the locks that have unfinished periods, one search of the index each.
	openLocks = `
with recursive walk as (
  (select lock from pawl.periods where ` + unfinished + ` order by lock limit 1)
  union all
  select (select p.lock from pawl.periods p where ` + unfinished + ` and p.lock > w.lock order by p.lock limit 1) from walk w where w.lock is not null
), lanes as (
  select lock from walk where lock is not null limit 10001
)`
)

// marked is a period as health is judged from it.
type marked struct {
	Job, Key, State, Reason, Waits, BlockedBy string
	Revision, Attempts, Ticks                 int
	ScheduledAt                               time.Time
	NotBefore, LateAt, DueAt, EndedAt         *time.Time
	StartedAt                                 *time.Time // of its first run, where that is known
	Timely                                    bool       // it is owed for now: can be late
	Newest                                    bool       // of the job's newest rows
}

// mark is how the period is shown at the given moment.
func (m marked) mark(now time.Time) PeriodMark {
	state := m.State
	if m.late(now) || m.State == stateComplete && m.Timely && (after(m.StartedAt, m.LateAt) || after(m.EndedAt, m.DueAt)) {
		state = "late"
	}
	return PeriodMark{m.Key, state, m.ScheduledAt.UTC()}
}

// late reports whether the period should have begun by now.
func (m marked) late(now time.Time) bool {
	return m.State == stateOpen && m.Timely && m.StartedAt == nil && after(&now, m.LateAt) && m.Waits != "paused"
}

// overdue reports whether the period should be complete by now.
func (m marked) overdue(now time.Time) bool {
	return (m.State == stateOpen || m.State == stateRunning || m.State == "held" && m.EndedAt == nil) && m.Timely && after(&now, m.DueAt)
}

func after(t, limit *time.Time) bool { return t != nil && limit != nil && t.After(*limit) }

// lastOf returns the periods without what a rerun has replaced, the oldest first, and the last of them.
func lastOf(rows []marked) (all, last []marked) {
	newest := map[string]int{}
	for i, m := range rows {
		if k, seen := newest[m.Key]; !seen || m.Revision > rows[k].Revision || m.Revision == rows[k].Revision && m.Newest {
			newest[m.Key] = i
		}
	}
	for _, i := range newest {
		all = append(all, rows[i])
	}
	slices.SortFunc(all, func(a, b marked) int { return cmp.Or(a.ScheduledAt.Compare(b.ScheduledAt), cmp.Compare(a.Key, b.Key)) })
	for _, m := range all {
		if m.Newest {
			last = append(last, m)
		}
	}
	return all, last[max(0, len(last)-marksKept):]
}

// summarize adds to jobs what their periods and runs say, in five questions whatever their number.
func summarize(ctx context.Context, tx pgx.Tx, rows []jobRow) ([]JobSummary, error) {
	names, locks := make([]string, len(rows)), make([]string, len(rows))
	sums, at := make([]JobSummary, len(rows)), map[string]*JobSummary{}
	for i, j := range rows {
		names[i], locks[i] = j.Job, j.Lock
		sums[i] = JobSummary{JobRecord: j.JobRecord, Words: j.words(), Definition: j.Definition, Next: j.next(5), Last14: []PeriodMark{}}
		at[j.Job] = &sums[i]
	}
	if len(rows) == 0 {
		return sums, nil
	}
	args := pgx.NamedArgs{"jobs": names, "locks": locks, "marks": marksKept, "most": mostCounted, "states": endStates()}
	if err := addFigures(ctx, tx, args, at); err != nil {
		return nil, err
	}
	found, err := tx.Query(ctx, marksSQL, args)
	if err != nil {
		return nil, err
	}
	marks, err := pgx.CollectRows(found, pgx.RowToStructByName[marked])
	if err != nil {
		return nil, err
	}
	of := map[string][]marked{}
	for _, m := range marks {
		of[m.Job] = append(of[m.Job], m)
	}
	for i, j := range rows {
		all, last := lastOf(of[j.Job])
		for _, m := range last {
			sums[i].Last14 = append(sums[i].Last14, m.mark(j.Now))
		}
		sums[i].Health, sums[i].HealthText = j.judge(all, last)
	}
	return sums, nil
}

// addFigures adds last runs, medians and counts.
func addFigures(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs, at map[string]*JobSummary) error {
	rows, err := tx.Query(ctx, lastRunsSQL, args)
	if err != nil {
		return err
	}
	runs, err := pgx.CollectRows(rows, pgx.RowToStructByName[RunRecord])
	if err != nil {
		return err
	}
	for _, r := range runs {
		utc(&r.StartedAt, r.EndedAt)
		at[r.Job].LastRun = &r
	}
	var job string
	var seconds float64
	var n, dead, missed int
	for _, q := range []struct {
		sql  string
		into []any
		add  func(*JobSummary)
	}{
		{mediansSQL, []any{&job, &seconds}, func(s *JobSummary) { s.Median = time.Duration(seconds * float64(time.Second)) }},
		{openSQL, []any{&job, &n}, func(s *JobSummary) { s.Open = min(n, mostCounted) }},
		{badSQL, []any{&job, &dead, &missed}, func(s *JobSummary) { s.Dead, s.Missed = dead, missed }},
	} {
		rows, err := tx.Query(ctx, q.sql, args)
		if err != nil {
			return err
		}
		if _, err := pgx.ForEachRow(rows, q.into, func() error { q.add(at[job]); return nil }); err != nil {
			return err
		}
	}
	return nil
}
