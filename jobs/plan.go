package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/gather"
)

const (
	peekSQL = `
select clock_timestamp(), exists (select from pawl.schedules where retired_at is null and next_at <= clock_timestamp())`

	dueSQL = `
select ` + plannedColumns + ` from pawl.schedules
 where retired_at is null and next_at <= clock_timestamp() and job > $1 order by job limit $2 for update skip locked`

	mostDue = 100 // schedules in one transaction
)

// plan turns due ticks into periods: as often as there is something due.
func (r *Runner) plan(ctx context.Context) error {
	after := "" // up to here nothing that is due can be planned
	for {
		var now time.Time
		var due bool
		sent, begun := r.clock(), time.Now()
		if err := r.pool.QueryRow(ctx, peekSQL).Scan(&now, &due); err != nil {
			return err
		}
		skew := apart(sent, now, time.Since(begun))
		r.tellSkew(ctx, skew)
		if skew = skew.Abs(); skew > maxSkew {
			r.passes.Add(1) // it is said, and a restart would find the same
			return fmt.Errorf("jobs: the database's clock (%s) and ours differ by %s, more than %s: nothing is planned; set the clocks right",
				now.UTC().Format(time.RFC3339), skew.Round(time.Second), maxSkew)
		}
		if !due {
			r.passes.Add(1)
			return nil
		}
		n, last, err := r.planDue(ctx, after, mostDue)
		if err == nil || gather.Refused(err) { // the server has answered: a schedule that can't be planned is no hung planner
			r.passes.Add(1)
		}
		switch {
		case gather.Refused(err):
			return r.planEach(ctx)
		case err != nil:
			return err
		case n == 0 && last == "":
			return nil
		case n == 0:
			after = last
		}
	}
}

// planEach plans schedule by schedule: one that fails, or waits for its lane, must not stop the others.
func (r *Runner) planEach(ctx context.Context) error {
	var errs []error
	for after := ""; ; {
		_, last, err := r.planDue(ctx, after, 1)
		if err != nil {
			errs = append(errs, fmt.Errorf("jobs: plan %q: %w", last, err))
		}
		if last == "" || err != nil && !gather.Refused(err) {
			return errors.Join(errs...)
		}
		after = last
	}
}

// planDue plans due schedules that no other replica is planning, those after a name, in one transaction. It returns
// how many it could plan, and the last name that it has met.
func (r *Runner) planDue(ctx context.Context, after string, most int) (n int, last string, err error) {
	var inserted []owed
	var over []*planned // their pause has ended by itself
	begin := stepwise()
	begin.BeginQuery += "; " + r.lockTimeoutSQL()
	err = pgx.BeginTxFunc(ctx, r.pool, begin, func(tx pgx.Tx) error {
		due, err := dueSchedules(ctx, tx, after, most)
		if err != nil {
			return err
		}
		var ready []*planned
		for _, p := range due {
			last = p.Job
			r.noteLater(ctx, p)
			if p.resumes() {
				over = append(over, p)
				continue
			}
			if err := r.plans.fill(p); err != nil {
				r.plans.once(p.Job, func() { r.log.ErrorContext(ctx, "stored schedule can't be planned", "job", p.Job, "error", err) })
				continue
			}
			ready = append(ready, p)
		}
		n = len(ready)
		inserted, err = writePlan(ctx, tx, ready)
		return err
	})
	if err != nil {
		return n, last, err
	}
	r.tally(ctx, inserted)
	waiting := map[string]bool{}
	for _, x := range inserted {
		if x.waits == "needs" && !waiting[x.job] { // what it needs may have been completed meanwhile, by one who couldn't see it
			waiting[x.job] = true
			err = errors.Join(err, r.rewait(ctx, x.job, ""))
		}
	}
	for _, p := range over {
		switch resumeErr := r.resumeDue(ctx, p); {
		case resumeErr == nil:
			n++
		case !errors.Is(resumeErr, ErrNotPaused): // else another replica was first
			err = errors.Join(err, fmt.Errorf("jobs: resume %q: %w", p.Job, resumeErr))
		}
	}
	return n, last, err
}

func dueSchedules(ctx context.Context, tx pgx.Tx, after string, most int) ([]*planned, error) {
	rows, err := tx.Query(ctx, dueSQL, after, most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanPlanned)
}

var errOtherApp = errors.New("belongs to another app")
