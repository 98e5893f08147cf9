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
	storedSQL = `
select ` + plannedColumns + ` from pawl.schedules where job = $1 for update`

	// What the old definition owed since its watermark nobody can say: this row says that.
	lostSQL = `
insert into pawl.audit (actor, action, job, reason, detail)
values ($1, 'replan', $2, $3, jsonb_build_object('watermark', $4::timestamptz, 'definition', $5::text::jsonb))`

	// A conflict is another replica that registers at the same moment: its row is looked at next.
	storeSQL = `
insert into pawl.schedules (job, app, lock, definition, watermark, next_at, generation)
values ($1, $2, $3, $4::text::jsonb, coalesce($5::timestamptz, clock_timestamp()), $6::timestamptz, $7)
on conflict (job) do nothing`

	editSQL = `
update pawl.schedules set lock = $2, definition = $3::text::jsonb, watermark = $4::timestamptz, next_at = $5::timestamptz,
       generation = $6, changed_at = clock_timestamp(), retired_at = null, retired_by = null
 where job = $1`
)

// register stores the definitions of this runner's jobs and, if they are the whole app, retires the app's others.
func (r *Runner) register(ctx context.Context) error {
	mine := r.handled().jobs
	if err := r.checkNeeds(ctx, mine); err != nil {
		return err
	}
	if r.cfg.WholeApp {
		if err := r.retireAbsent(ctx, mine, r.cfg.AllowRetire); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(mine)) {
		if err := r.registerJob(ctx, mine[name]); err != nil {
			return &JobError{Job: name, Err: err}
		}
	}
	return r.loadNeeds(ctx)
}

func (r *Runner) registerJob(ctx context.Context, j Job) error {
	for range 2 { // a new row is inserted first and looked at then
		stored := false
		err := pgx.BeginTxFunc(ctx, r.pool, stepwise(), func(tx pgx.Tx) error {
			if j.RenameFrom != "" {
				if skip, err := r.takeOver(ctx, tx, j); skip || err != nil {
					stored = true
					return err
				}
			}
			rows, err := tx.Query(ctx, storedSQL, j.Name)
			if err != nil {
				return err
			}
			old, err := pgx.CollectExactlyOneRow(rows, scanPlanned)
			if errors.Is(err, pgx.ErrNoRows) {
				return r.store(ctx, tx, j)
			}
			if err != nil {
				return err
			}
			stored = true
			return r.edit(ctx, tx, j, old)
		})
		if err != nil || stored {
			return err
		}
	}
	return nil
}

func (r *Runner) store(ctx context.Context, tx pgx.Tx, j Job) error {
	if former, err := r.formerName(ctx, tx, j); former || err != nil {
		return err
	}
	d := j.definition(r.cfg.App)
	s, err := d.parse()
	if err != nil {
		return err
	}
	var start *time.Time
	now := time.Now()
	if err := tx.QueryRow(ctx, `select clock_timestamp()`).Scan(&now); err != nil {
		return err
	}
	if !j.Start.IsZero() {
		start, now = &j.Start, j.Start
	}
	_, err = tx.Exec(ctx, storeSQL, j.Name, d.App, d.Lock, string(d.json()), start, nextAt(s, now), r.cfg.Generation)
	return err
}

// edit replaces a stored definition. Ticks up to now are planned by the old one first, or they would be lost.
func (r *Runner) edit(ctx context.Context, tx pgx.Tx, j Job, old *planned) error {
	d := old.keepsLock(j.definition(r.cfg.App))
	switch {
	case old.App != d.App:
		return fmt.Errorf("it %w, %q: rename this job, or set jobs.Config.App to %q", errOtherApp, old.App, old.App)
	case old.generation > r.cfg.Generation:
		r.noteLater(ctx, old)
		return nil
	case old.unreadable == nil && old.same(d) && !old.retired() && old.generation == r.cfg.Generation:
		return nil
	}
	s, err := d.parse()
	if err != nil {
		return err
	}
	back := old.comesBack()
	if !old.retired() || back {
		if err := r.planRest(ctx, tx, old); err != nil {
			return err
		}
	}
	if back {
		if err := r.reopenRetired(ctx, tx, old); err != nil {
			return err
		}
	}
	if !old.retired() && old.same(d) { // only the generation is new
		d = old.definition
	} else {
		r.log.InfoContext(ctx, "schedule changed", "job", j.Name, "was", old.Schedule, "is", d.Schedule)
	}
	old.watermark = old.now
	if j.Start.After(old.now) {
		old.watermark = j.Start
	}
	_, err = tx.Exec(ctx, editSQL, j.Name, d.Lock, string(d.json()), old.watermark, old.nextAt(s), r.cfg.Generation)
	return err
}

// planRest plans a schedule's ticks up to now, however many passes that takes.
func (r *Runner) planRest(ctx context.Context, tx pgx.Tx, p *planned) error {
	for more := true; more; more = p.watermark.Before(p.until()) {
		if err := r.plans.fill(p); err != nil {
			r.log.ErrorContext(ctx, "old schedule can't be planned: its last ticks are lost", "job", p.Job, "since", p.watermark, "error", err)
			_, err = tx.Exec(ctx, lostSQL, r.cfg.Holder, p.Job, storable(err.Error()), p.watermark, string(p.stored))
			return err
		}
		inserted, err := writePlan(ctx, tx, []*planned{p})
		if err != nil {
			return err
		}
		r.tally(ctx, inserted)
	}
	return nil
}

// noteLater says once that another definition of a job of ours is stored.
func (r *Runner) noteLater(ctx context.Context, p *planned) {
	j, ours := r.handled().jobs[p.Job]
	if !ours || p.unreadable != nil || p.same(p.keepsLock(j.definition(r.cfg.App))) {
		return
	}
	r.plans.once("later "+p.Job+" "+string(p.stored), func() {
		r.log.WarnContext(ctx, "a later definition of the job is stored: it is planned by that one", "job", p.Job,
			"ours", j.Schedule, "stored", p.Schedule)
	})
}
