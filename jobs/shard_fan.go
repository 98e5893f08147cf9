package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/internal/gather"
)

const fanOutSQL = `select pawl.fan_out($1::text::uuid, $2, $3, $4::text[], $5, $6)`

// fanOut ends the run with the period's shards open. Then the run has ended, as after [Run.Complete].
func (r *Run) fanOut(ctx context.Context, keys []string) error {
	if err := r.alive(ctx); err != nil {
		return err
	}
	r.ending.Lock()
	defer r.ending.Unlock()
	if r.ended.Load() {
		return fmt.Errorf("jobs: %s %s: %w", r.Job, r.Period.Key, ErrEnded)
	}
	var n *int
	sent := false // once, with no answer
	err := r.runner.insist(ctx, max(r.lease.TTL, callTimeout), func() (err error) {
		if sent {
			state, ended, err := r.runner.ask(ctx, r)
			if err != nil {
				return err
			}
			if ended {
				if state == stateComplete {
					n = new(int)
				}
				return nil
			}
		}
		r.kept.Completing()
		n, err = r.sendFanOut(ctx, keys)
		if sent = err != nil && !gather.Refused(err); !sent && err != nil {
			r.kept.Resume() // nothing was done
		}
		return err
	})
	if err == nil && n == nil {
		err = &fence.StaleError{Token: r.token, Code: fence.CodeNotHeld}
	}
	if err != nil {
		r.kept.Resume()
		r.refused(ctx, err, "fan out")
		return err
	}
	r.ended.Store(true)
	r.Logger().InfoContext(ctx, "period fanned out", "shards", len(keys), "open", *n)
	return nil
}

func (r *Run) sendFanOut(ctx context.Context, keys []string) (n *int, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	args := []any{r.ID.String(), r.token.Lock, r.token.Seq, keys, r.job.runs(), r.runner.mostWait.Milliseconds()}
	err = r.runner.statement(ctx, fanOutSQL, args, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&n}, func() error { return nil })
		return err
	})
	return n, err
}

const (
	settleSQL = `select pawl.settle_shards($1, $2, $3, $4)`

	unsettledSQL = `
select p.job, p.key, p.revision from pawl.periods p
 where p.shards is not null and p.ended_at is null and p.state = 'running'
   and not exists (select from pawl.runs r where r.lock = p.lock and r.ended_at is null)
   and not exists (select from pawl.periods s where s.job = p.job and s.parent = p.key and s.revision = p.revision and s.state in ('open', 'running'))
 limit 1000`
)

// settle goes on with a period whose last shard has ended: a transaction of its own, after the shard's. If it can't, the
// backstop does.
func (r *Runner) settle(ctx context.Context, job, key string, revision int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	var became *string
	err := r.statement(ctx, settleSQL, []any{job, key, revision, r.mostWait.Milliseconds()}, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&became}, func() error { return nil })
		return err
	})
	if err != nil {
		return fmt.Errorf("jobs: settle the shards of %s %s: %w", job, key, err)
	}
	if deref(became) == stateDead {
		r.log.ErrorContext(ctx, "period is dead: shards of it are", "job", job, "period", key, "revision", revision)
		r.metrics.Periods.WithLabelValues(job, stateDead, "shard").Inc()
		r.tryPauseDead(ctx, job)
	}
	return nil
}

// trySettle settles after the end of a shard's run.
func (r *Runner) trySettle(ctx context.Context, run *Run) {
	if err := r.settle(ctx, run.Job, run.Period.Key, run.Revision); err != nil {
		run.Logger().WarnContext(ctx, "the period of the shard is not looked at yet: the backstop does it", "error", err)
	}
}

// settleAll settles what a process left that died after a shard's commit, and what was swept or retired.
func (r *Runner) settleAll(ctx context.Context) error {
	type fanned struct {
		job, key string
		revision int
	}
	rows, err := r.pool.Query(ctx, unsettledSQL)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f fanned, err error) {
		return f, row.Scan(&f.job, &f.key, &f.revision)
	})
	for _, f := range found {
		err = errors.Join(err, r.settle(ctx, f.job, f.key, f.revision))
	}
	return err
}
