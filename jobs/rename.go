package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	bothSQL = `select ` + plannedColumns + ` from pawl.schedules where job = any ($1::text[]) order by job for update`

	// What has a name of its own already: periods, or ones that are still on their way from it to another name.
	strangersSQL = `
select exists (select from pawl.periods where job = $1) or exists (select from pawl.renames where former = $1 and done_at is null)`

	// The row is the job: watermark, pause and generation go with it. A retired one of the new name has nothing any more.
	renameSQL = `
with away as (
  delete from pawl.renames where former = $2
), again as (
  update pawl.renames set job = $2 where job = $1 and former <> $2
)
insert into pawl.renames (former, job, generation) values ($1, $2, $3)
on conflict (former) do update set job = excluded.job, generation = excluded.generation, at = clock_timestamp(), done_at = null`

	dropRetiredSQL = `delete from pawl.schedules where job = $1 and retired_at is not null`
	// Numbers go on, or a receiver would take what follows for old.
	renameOutboxSQL = `
with moved as (
  delete from pawl.outbox_keys where job = $1 returning key, seq, at
), differ as (
  update pawl.effect_differences d set job = $2 where d.job = $1 and not exists (select from pawl.effect_differences o where o.job = $2 and o.idempotency_key = d.idempotency_key)
)
insert into pawl.outbox_keys as k (job, key, seq, at) select $2, key, seq, at from moved
on conflict (job, key) do update set seq = greatest(k.seq, excluded.seq), at = greatest(k.at, excluded.at)`
	renameScheduleSQL = `update pawl.schedules set job = $2, renamed = true where job = $1`

	// What isn't over comes along at once, with its runs; the lanes have been entered. Of what is over the latest does, for
	// who looks; the backstop brings the rest.
	bringOpenSQL = `
select pawl.bring($1, $2, array(
  select p.key from pawl.periods p where p.job = $1 and p.waits is not null
   union select p.key from pawl.periods p where p.job = $1 and p.waits is null and p.ended_at is null), null)`
	bringSomeSQL = `select pawl.bring($1, $2, null, $3::int)`

	// Deliveries go by the job's name: nobody would fetch those of the former one, and leave makes new ones.
	dropDeliveriesSQL = `
update pawl.river_job j set state = 'cancelled', finalized_at = clock_timestamp()
  from (select id from pawl.river_job where kind = $1 and queue = 'pawl' and state in ('available', 'scheduled', 'pending', 'retryable')
         order by id for update skip locked) old
 where j.id = old.id`
)

// takeOver lets the job that is about to be registered take the place of the one that it was renamed from, if that is
// stored and no live one of the new name is. The lock stays the former's: a run may be under way under it, and what it
// protects knows it by that name. skip: a later definition is stored, nothing is to be registered.
func (r *Runner) takeOver(ctx context.Context, tx pgx.Tx, j Job) (skip bool, err error) {
	old, now, err := both(ctx, tx, j)
	switch {
	case err != nil || old == nil || now != nil && old.retired():
		return false, err
	case now != nil && !now.retired():
		r.plans.once("both "+j.Name, func() {
			r.log.WarnContext(ctx, "job was renamed from one that is stored beside it: nothing is taken over; retire one of the two", "job", j.Name, "former", j.RenameFrom)
		})
		return false, nil
	case old.App != r.cfg.App:
		return false, fmt.Errorf("rename from %q: it %w, %q", j.RenameFrom, errOtherApp, old.App)
	case old.generation > r.cfg.Generation:
		r.plans.once("later "+j.Name, func() {
			r.log.WarnContext(ctx, "a later definition of the former job is stored: it isn't renamed", "job", j.Name, "former", j.RenameFrom)
		})
		return true, nil
	}
	var strangers bool
	if err := tx.QueryRow(ctx, strangersSQL, j.Name).Scan(&strangers); err != nil {
		return false, err
	}
	if strangers {
		return false, fmt.Errorf("%w: rename from %q: %q has periods of its own, or they aren't all renamed yet; use another name, or try again in some minutes",
			errNameUsed, j.RenameFrom, j.Name)
	}
	if old.comesBack() {
		if err := r.reopenRetired(ctx, tx, old); err != nil {
			return false, err
		}
	}
	return false, r.rename(ctx, tx, j, old)
}

var errNameUsed = errors.New("the name is in use")

// both locks the schedule rows of the two names, by name.
func both(ctx context.Context, tx pgx.Tx, j Job) (old, now *planned, err error) {
	rows, err := tx.Query(ctx, bothSQL, []string{j.RenameFrom, j.Name})
	if err != nil {
		return nil, nil, err
	}
	found, err := pgx.CollectRows(rows, scanPlanned)
	for _, p := range found {
		if p.Job == j.Name {
			now = p
		} else {
			old = p
		}
	}
	return old, now, err
}

func (r *Runner) rename(ctx context.Context, tx pgx.Tx, j Job, old *planned) error {
	locks, err := enterAll(ctx, tx, old.Job)
	if err != nil {
		return err
	}
	var b batch
	b.Queue(dropRetiredSQL, j.Name)
	b.Queue(renameScheduleSQL, old.Job, j.Name)
	b.Queue(renameOutboxSQL, old.Job, j.Name)
	b.Queue(renameSQL, old.Job, j.Name, r.cfg.Generation)
	b.Queue(bringOpenSQL, old.Job, j.Name)
	b.Queue(bringSomeSQL, old.Job, j.Name, pruneBatch)
	b.Queue(dropDeliveriesSQL, kind(old.Job))
	queueAudit(&b, r.cfg.Holder, "rename", j.Name, "", "", "it was "+old.Job, "")
	b.Queue(leaveSQL, locks)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	r.log.InfoContext(ctx, "job renamed", "job", j.Name, "former", old.Job, "lock", old.Lock)
	return nil
}

const (
	renamedSQL = `select job, generation, done_at is not null from pawl.renames where former = $1 for update`
	reuseSQL   = `delete from pawl.renames where former = $1`
)

// formerName reports whether a job that isn't stored has become another: then an older file or binary asks, which must not
// bring it back. One that has the other job too, or is of a later generation, means a new job.
func (r *Runner) formerName(ctx context.Context, tx pgx.Tx, j Job) (former bool, err error) {
	var to string
	var generation int64
	var done bool
	err = tx.QueryRow(ctx, renamedSQL, j.Name).Scan(&to, &generation, &done)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, both := r.handled().jobs[to]
	switch {
	case !both && r.cfg.Generation <= generation:
		r.plans.once("former "+j.Name, func() {
			r.log.WarnContext(ctx, "job has another name by now: it isn't registered, an older file or binary has it", "job", j.Name, "now", to)
		})
		return true, nil
	case !done:
		return false, fmt.Errorf("%w: the history of the job that is %q now isn't all renamed yet; try again in some minutes", errNameUsed, to)
	}
	_, err = tx.Exec(ctx, reuseSQL, j.Name)
	return false, err
}

// checkRenames refuses what can't be carried out: a former name that is still in use, or that two jobs claim.
func checkRenames(mine map[string]Job) error {
	heirs := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(mine)) {
		from := mine[name].RenameFrom
		if from == "" {
			continue
		}
		if _, there := mine[from]; there {
			return &ConfigError{name, "RenameFrom", from, "remove it, or the job of that name, which is there still"}
		}
		if first, twice := heirs[from]; twice {
			return &ConfigError{name, "RenameFrom", from, "remove it: " + first + " is the heir of that job already"}
		}
		heirs[from] = name
	}
	return nil
}

const (
	bringTurn = time.Second // of each round of the backstop

	// With messages whose transaction was open while their outbox was renamed, however long.
	pendingSQL = `
select former, job from pawl.renames f
 where done_at is null or exists (select from pawl.outbox m where m.job = f.former) and not exists (select from pawl.schedules s where s.job = f.former)
 order by at limit 1 for update skip locked`

	// Runs whose periods are gone, and what was told of them.
	bringRunsSQL = `
with o as materialized (
  select r.id from pawl.runs r where r.job = $1 limit $3::int for update skip locked
), said as (
  update pawl.outputs x set job = $2 from o where x.run = o.id
)
update pawl.runs r set job = $2 from o where r.id = o.id`
	bringArtifactsSQL = `
update pawl.artifact_versions set job = $2 where ctid = any (array(select ctid from pawl.artifact_versions where job = $1 limit $3 for update skip locked))`
	bringEventsSQL = `update pawl.events set job = $2 where job = $1`
	broughtSQL     = `
update pawl.renames set done_at = clock_timestamp()
 where former = $1 and not exists (select from pawl.periods where job = $1) and not exists (select from pawl.runs where job = $1)`
)

// bringAll gives the history of renamed jobs its new name, the latest first: in short transactions, for a while.
func (r *Runner) bringAll(ctx context.Context) error {
	for since := time.Now(); time.Since(since) < bringTurn; {
		more := false
		err := pgx.BeginTxFunc(ctx, r.pool, stepwise(), func(tx pgx.Tx) (err error) {
			if _, err = tx.Exec(ctx, r.lockTimeoutSQL()); err == nil {
				more, err = bringBatch(ctx, tx, pruneBatch)
			}
			return err
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// bringBatch reports whether there may be more.
func bringBatch(ctx context.Context, tx pgx.Tx, most int) (more bool, err error) {
	var former, job string
	err = tx.QueryRow(ctx, pendingSQL).Scan(&former, &job)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	var n int64
	if err == nil {
		err = tx.QueryRow(ctx, bringSomeSQL, former, job, most).Scan(&n)
	}
	if err == nil && n > 0 { // nobody fetches them any more; the backstop makes new ones
		_, err = tx.Exec(ctx, dropDeliveriesSQL, kind(former))
	}
	if err != nil || n > 0 {
		return true, err
	}
	tag, err := tx.Exec(ctx, bringRunsSQL, former, job, most)
	if err != nil || tag.RowsAffected() > 0 {
		return true, err
	}
	tag, err = tx.Exec(ctx, bringArtifactsSQL, former, job, most)
	if err != nil || tag.RowsAffected() > 0 {
		return true, err
	}
	if _, err := tx.Exec(ctx, bringEventsSQL, former, job); err != nil {
		return false, err
	}
	tag, err = tx.Exec(ctx, broughtSQL, former) // else somebody holds a row: next time
	return tag.RowsAffected() > 0, err
}
