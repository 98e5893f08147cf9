package jobs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/jobs/schedule"
)

const (
	ownApp     = "pawl"       // of the jobs that every runner brings along
	pruneName  = "pawl-prune" // the only one
	pruneBatch = 1000         // rows in one transaction
)

// pruneJob deletes what is older than is kept. It is a job like any other: one replica a day runs it, under a lease.
func pruneJob() Job {
	return Job{
		Name: pruneName, app: ownApp, Schedule: "43 3 * * *", Period: schedule.Day, CatchUpWindow: 30 * 24 * time.Hour,
		Timeout: 6 * time.Hour, Func: prune,
	}
}

// aged is a table whose old rows are of no use. The statement deletes at most $1 rows. What somebody has locked is left
// for the next day. Rows are found through an index and deleted by where they lie.
type aged struct{ table, sql string }

// pruned is what is kept equally long for all jobs. What a job decides is deleted job by job. Never deleted: the
// audit, marks, what was done once, periods of a day and longer.
func pruned() []aged {
	return []aged{
		{"pawl.tenures", `
delete from pawl.tenures where ctid = any (array(
  select ctid from pawl.tenures where ended_at < (select clock_timestamp() - interval '400 days') limit $1 for update skip locked))`},
		// The last one that was counted stays: a counter must not fall.
		{"pawl.refusals", `
delete from pawl.refusals where ctid = any (array(
  select ctid from pawl.refusals where at < (select clock_timestamp() - interval '400 days') and nth is distinct from (select max(nth) from pawl.refusals)
   order by at limit $1 for update skip locked))`},
		{"pawl.idempotency", pruneIdempotencySQL},
		{"pawl.alerts", `
delete from pawl.alerts where ctid = any (array(
  select ctid from pawl.alerts where at < (select clock_timestamp() - interval '90 days') limit $1 for update skip locked))`},
		{"pawl.events", `
delete from pawl.events where ctid = any (array(
  select ctid from pawl.events where at < (select clock_timestamp() - interval '90 days') order by at limit $1 for update skip locked))`},
		{"pawl.artifact_versions", `
delete from pawl.artifact_versions where ctid = any (array(
  select ctid from pawl.artifact_versions where removed_at < (select clock_timestamp() - interval '400 days') order by removed_at limit $1 for update skip locked))`},
		{"pawl.replicas", `
delete from pawl.replicas where holder = any (array(
  select holder from pawl.replicas where seen_at < (select clock_timestamp() - interval '1 day') order by holder limit $1 for update skip locked))`},
	}
}

// Two days after the lease that the request was given is over: nobody asks again for that long.
const pruneIdempotencySQL = `
delete from pawl.idempotency where ctid = any (array(
  select i.ctid from pawl.idempotency i
   where i.at < (select clock_timestamp() - interval '2 days')
     and not exists (select from pawl.locks l where l.name = i.lock and l.grant_id = i.grant_id and l.expires_at > (select clock_timestamp() - interval '2 days'))
     and not exists (select from pawl.tenures t where t.grant_id = i.grant_id and t.lock = i.lock and t.ended_at > (select clock_timestamp() - interval '2 days'))
   limit $1 for update of i skip locked))`

// $2 job. Keys tell the kind of a period, also where the job's has changed: an hour's and a tick's hold a T, a manual one is
// a ULID. Nothing that the planner could plan again, that a person has yet to decide on, or that another job waits for.
const prunePeriodsSQL = `
with gone as (
  delete from pawl.periods where ctid = any (array(
    select p.ctid from pawl.periods p
     where p.job = $2 and p.scheduled_at < least((select clock_timestamp() - interval '400 days'), (select s.watermark from pawl.schedules s where s.job = $2))
       and p.ended_at is not null and p.waits is null and p.parent is null and coalesce(p.last_at, p.scheduled_at) < (select clock_timestamp() - interval '400 days')
       and p.key ~ '^([0-9]{4}-[0-9]{2}-[0-9]{2}T.*|[0-9A-HJKMNP-TV-Z]{26})$'
       and p.key <> all (array(select w.key from pawl.periods w where w.waits = 'needs'))
       and not exists (select from pawl.effects e where e.job = p.job and e.key = p.key and e.ended_at is null)
     order by p.scheduled_at limit $1 for update skip locked))
  returning job, key, revision
), left_behind as (
  delete from pawl.checkpoints c using gone g where c.job = g.job and c.key = g.key and c.revision = g.revision
)
select count(*) from gone`

// $2 job. Shards of a period that ended as long ago: they tell how it went, and a rerun makes new ones.
const pruneShardsSQL = `
with gone as (
  delete from pawl.periods where ctid = any (array(
    select s.ctid from pawl.periods s
     where s.job = $2 and s.parent is not null and s.scheduled_at < (select clock_timestamp() - interval '400 days') and s.ended_at < (select clock_timestamp() - interval '400 days')
       and not exists (select from pawl.periods p where p.job = s.job and p.key = s.parent and p.revision = s.revision and (p.state <> 'complete' or p.ended_at > (select clock_timestamp() - interval '400 days')))
     order by s.parent limit $1 for update of s skip locked))
  returning job, key, revision
), left_behind as (
  delete from pawl.checkpoints c using gone g where c.job = g.job and c.key = g.key and c.revision = g.revision
)
select count(*) from gone`

// Of one job ($2) what ended longer ago than it is kept ($3, in ms).
const (
	pruneOutputsSQL = `
delete from pawl.outputs where ctid = any (array(
  select ctid from pawl.outputs where job = $2 and at < (select clock_timestamp() - $3::bigint * interval '1 ms')
   order by at limit $1 for update skip locked))`

	// By state, since runs are found by job, state and start: those that are kept are never read.
	pruneRunsSQL = `
delete from pawl.runs where ctid = any (array(
  select r.at from unnest(array['complete', 'failed', 'timed_out', 'lost', 'drained', 'cancelled', 'skipped']) s (state) cross join lateral (
    select x.ctid as at from pawl.runs x
     where x.job = $2 and x.state = s.state and x.state <> 'running' and x.started_at < (select clock_timestamp() - $3::bigint * interval '1 ms')
       and x.ended_at < (select clock_timestamp() - $3::bigint * interval '1 ms')
     order by x.started_at limit $1 for update skip locked) r
   limit $1))`
)

// What was done for a period goes when no revision of it is left: a rerun would do it again. What has no outcome stays.
const (
	pruneEffectsSQL = `
delete from pawl.effects where ctid = any (array(
  select e.ctid from pawl.effects e where e.job = $2 and e.at < (select clock_timestamp() - interval '400 days') and e.ended_at is not null
     and not exists (select from pawl.periods p where p.job = e.job and p.key = e.key)
   order by e.at limit $1 for update skip locked))`

	pruneOutboxSQL = `
delete from pawl.outbox where ctid = any (array(
  select m.ctid from pawl.outbox m where m.job = $2 and m.at < (select clock_timestamp() - interval '400 days')
     and not exists (select from pawl.periods p where p.job = m.job and p.key = m.period)
   order by m.at limit $1 for update skip locked))`
)

// prune is the function of the job. It may end anywhere: what it has deleted stays deleted, and the next run goes on.
func prune(ctx context.Context, run *Run) error {
	var all int64
	told := func(what string, n int64, err error) error {
		if all += n; n > 0 {
			run.Progress(all, 0)
			run.Logger().InfoContext(ctx, "pruned", "table", what, "rows", n)
		}
		if err != nil {
			return fmt.Errorf("jobs: prune %s: %w", what, err)
		}
		return nil
	}
	most := func(what, sql string, args ...any) error {
		n, err := run.pruneAll(ctx, sql, args...)
		return told(what, n, err)
	}
	for _, a := range pruned() {
		if there, err := run.exists(ctx, a.table); err != nil || !there {
			if err != nil {
				return err
			}
			continue
		}
		if err := most(a.table, a.sql); err != nil {
			return err
		}
	}
	kept, err := run.retentions(ctx)
	if err != nil {
		return err
	}
	for _, job := range slices.Sorted(maps.Keys(kept)) {
		if err := most("pawl.outputs", pruneOutputsSQL, job, kept[job].output().Milliseconds()); err != nil {
			return err
		}
		if err := most("pawl.runs", pruneRunsSQL, job, kept[job].runs().Milliseconds()); err != nil {
			return err
		}
		if err := most("pawl.periods", prunePeriodsSQL, job); err != nil {
			return err
		}
		if err := most("pawl.effects", pruneEffectsSQL, job); err != nil {
			return err
		}
		if err := most("pawl.outbox", pruneOutboxSQL, job); err != nil {
			return err
		}
		if err := most("pawl.periods", pruneShardsSQL, job); err != nil {
			return err
		}
	}
	n, err := run.pruneLanes(ctx)
	if err := told("pawl.lanes", n, err); err != nil {
		return err
	}
	// It raises the floor of the tokens in the same statement: the next token of each lock stays larger.
	return most("pawl.locks", `select pawl.prune(interval '400 days', $1)`)
}

// pruneAll executes a statement until it finds less than a batch, each time in a transaction that the run's lease guards.
func (r *Run) pruneAll(ctx context.Context, sql string, args ...any) (all int64, err error) {
	for {
		var n int64
		err := r.Tx(ctx, func(tx pgx.Tx) (err error) {
			n, err = pruneSome(ctx, tx, sql, args...)
			return err
		})
		all += n
		if err != nil || n < pruneBatch {
			return all, err
		}
	}
}

func pruneSome(ctx context.Context, tx pgx.Tx, sql string, args ...any) (int64, error) {
	if _, err := tx.Exec(ctx, `set local enable_seqscan = off`); err != nil { // the table's size isn't known yet, or was another
		return 0, err
	}
	rows, err := tx.Query(ctx, sql, append([]any{pruneBatch}, args...)...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var n int64
	if rows.Next() { // a count; a DELETE gives none
		if err := rows.Scan(&n); err != nil {
			return 0, err
		}
	}
	rows.Close()
	return max(n, deleted(rows)), rows.Err()
}

// deleted is how many rows a DELETE has taken.
func deleted(rows pgx.Rows) int64 {
	if tag := rows.CommandTag(); tag.Delete() {
		return tag.RowsAffected()
	}
	return 0
}

func (r *Run) exists(ctx context.Context, table string) (there bool, err error) {
	err = r.runner.pool.QueryRow(ctx, `select to_regclass($1) is not null`, table).Scan(&there)
	return there, err
}

// retentions are what the stored jobs say, retired ones too. A definition that can't be read keeps as the default does.
func (r *Run) retentions(ctx context.Context) (map[string]Retention, error) {
	rows, err := r.runner.pool.Query(ctx, `select `+plannedColumns+` from pawl.schedules`)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, scanPlanned)
	kept := map[string]Retention{}
	for _, p := range all {
		kept[p.Job] = Retention{}
		if p.unreadable == nil {
			kept[p.Job] = Retention{Runs: p.KeepRuns, Output: p.KeepOutput}
		}
	}
	return kept, err
}
