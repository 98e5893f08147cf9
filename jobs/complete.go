package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawl/fence"
)

// Complete runs fn in a guarded transaction and commits what it wrote together with the completion of the period
// and the release of the lease. fn may be nil. After it the run has ended: nothing else may be written.
//
// The run's end is taken only after fn: a function that hangs in fn can't keep its run from being ended.
func (r *Run) Complete(ctx context.Context, fn func(tx pgx.Tx) error) error {
	if err := r.alive(ctx); err != nil {
		r.refused(ctx, err, "complete")
		return err
	}
	g, ending := &guarded{run: r}, false
	defer func() {
		if ending {
			r.ending.Unlock()
		}
	}()
	err := g.work(ctx, fn, func(ctx context.Context, tx pgx.Tx) error {
		r.ending.Lock()
		ending = true
		if err := r.alive(ctx); err != nil {
			return err
		}
		if r.snapshots() {
			return r.completePeriod(ctx, tx)
		}
		r.kept.Completing()
		b := endBatch([]endRequest{{run: r, outcome: stateComplete}}, true, callTimeout, func(uuid.UUID, bool) {})
		return tx.SendBatch(ctx, b).Close()
	})
	if errors.Is(err, fence.ErrUnknown) {
		err = r.askComplete(ctx, err)
	}
	if err == nil && r.snapshots() {
		r.endCompleted(ctx)
	}
	if err != nil {
		if ending && !r.ended.Load() {
			r.kept.Resume()
		}
		r.refused(ctx, err, "complete")
		return err
	}
	r.completed.Store(true)
	r.ended.Store(true)
	return nil
}

// askComplete finds out whether a completion whose reply was lost has committed.
func (r *Run) askComplete(ctx context.Context, unknown error) error {
	state, err := r.askPeriod(ctx)
	switch {
	case err != nil:
		return errors.Join(unknown, err)
	case state == stateComplete:
		return nil
	}
	return fmt.Errorf("jobs: %s %s: completion was not committed, it may be tried again: %w", r.Job, r.Period.Key, ErrNotCommitted)
}

// snapshots reports whether the run's transactions see one snapshot. Then they may not touch what beats and planners write
// meanwhile: it would be 40001 for nothing.
func (r *Run) snapshots() bool { return r.job.Isolation != pgx.ReadCommitted }

// completePeriodSQL touches the period only, which nobody but its run writes while it runs.
const completePeriodSQL = `
update pawl.periods p set state = 'complete', reason = null, ended_at = clock_timestamp() from pawl.runs r
 where r.id = $1::text::uuid and p.job = r.job and p.key = r.key and p.revision = r.revision and p.run = r.id and p.state = 'running'`

func (r *Run) completePeriod(ctx context.Context, tx pgx.Tx) error {
	tag, err := tx.Exec(ctx, completePeriodSQL, r.ID.String())
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("jobs: %s %s: the period is not this run's: %w", r.Job, r.Period.Key, fence.ErrNotHeld)
	}
	return err
}

// endCompleted ends the run of a period that has been completed under a snapshot. If that fails, the sweep finds the
// period complete and ends the rest.
func (r *Run) endCompleted(ctx context.Context) {
	if ok, err := r.runner.sendEnd(ctx, r, endRequest{run: r, outcome: stateComplete}); err != nil || !ok {
		r.Logger().WarnContext(ctx, "period is complete, but its run not ended: the sweep ends it", "error", err)
	}
}

const askPeriodSQL = `
select p.state from pawl.runs r join pawl.periods p on p.job = r.job and p.key = r.key and p.revision = r.revision and p.run = r.id
 where r.id = $1::text::uuid for update of p`

// askPeriod answers what the period's state is, after the end of a transaction that may still be under way.
func (r *Run) askPeriod(ctx context.Context) (state string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	err = r.runner.pool.QueryRow(ctx, askPeriodSQL, r.ID.String()).Scan(&state)
	return state, err
}
