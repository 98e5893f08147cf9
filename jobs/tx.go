package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawl/fence"
)

// mineSQL goes with the guard: the period must be this run's, which it isn't any more once a person has cancelled it.
const mineSQL = `; select pawl.must(exists (select from pawl.runs r join pawl.periods p using (job, key, revision)
  where r.id = '%s' and p.run = r.id and p.state = 'running'), 'PW002')`

// commitTimeout bounds a COMMIT, which has a context of its own: cancelled halfway its outcome would be unknown.
const commitTimeout = 5 * time.Second

// Tx runs fn in a guarded transaction: it commits wholly under this run's token, or fails. After a newer token has
// been granted nothing that it still tries to write can land; that is [fence.ErrStale] (or [fence.ErrNotHeld]) and
// a recorded refusal. [fence.ErrUnknown]: the reply to COMMIT was lost; if fn called [Run.Checkpoint] pawl asks
// and answers for certain.
func (r *Run) Tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	if err := r.alive(ctx); err != nil {
		r.refused(ctx, err, "begin")
		return err
	}
	g := &guarded{run: r}
	err := g.work(ctx, fn, nil)
	if errors.Is(err, fence.ErrUnknown) && g.operation != uuid.Nil {
		err = r.askCheckpoint(ctx, g, err)
	}
	if err == nil && g.operation != uuid.Nil {
		r.mu.Lock()
		r.checkpoint = g.value
		r.mu.Unlock()
	}
	r.refused(ctx, err, "transaction")
	return err
}

// guarded is the transaction that a job's function gets. It remembers the checkpoint that commits with it.
type guarded struct {
	pgx.Tx
	run       *Run
	operation uuid.UUID
	previous  string // the operation that was there before; empty: none
	value     []byte
}

// Commit refuses: the transaction is committed with a guard, by whoever gave it.
func (g *guarded) Commit(context.Context) error { return errGiven }

// Rollback refuses too: return an error instead.
func (g *guarded) Rollback(context.Context) error { return errGiven }

var errGiven = errors.New("jobs: the transaction is ended by Run.Tx or Run.Complete: return from the function instead")

// work begins, runs fn and then last, and commits. With last the guard before COMMIT is left out: last has released
// the lease, which the guard would take for a loss.
func (g *guarded) work(ctx context.Context, fn func(pgx.Tx) error, last func(context.Context, pgx.Tx) error) (err error) {
	opts := fence.BeginOptionsAt(g.run.job.Isolation, g.run.token, g.run.job.TTL)
	opts.BeginQuery += fmt.Sprintf(mineSQL, g.run.ID)
	if last != nil && !g.run.snapshots() {
		opts.CommitQuery = ""
	}
	if g.Tx, err = g.run.runner.cfg.Pool.BeginTx(ctx, opts); err != nil {
		return fence.Wrap(err, g.run.token)
	}
	defer func() { _ = g.Tx.Rollback(context.WithoutCancel(ctx)) }()
	if fn != nil {
		if err = fn(g); err != nil {
			return fence.Wrap(err, g.run.token)
		}
	}
	if err = g.run.kept.Sure(ctx); err == nil { // what can't be proven to be held isn't committed
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if last != nil {
		if err = last(own, g.Tx); err != nil {
			return fence.Wrap(err, g.run.token)
		}
	}
	return fence.WrapCommit(g.Tx.Commit(own), g.run.token)
}

// The mark of a checkpoint is its token: an older one never overwrites a newer one's, and only the period's own run
// writes it. By the run, since the job may have another name by now.
const checkpointSQL = `
with mine as materialized (
  select p.job, p.key, p.revision from pawl.runs r join pawl.periods p on p.job = r.job and p.key = r.key and p.revision = r.revision
   where r.id = $1::text::uuid and p.state = 'running' and p.token = $2::bigint
), previous as materialized (
  select c.operation from pawl.checkpoints c join mine m on c.job = m.job and c.key = m.key and c.revision = m.revision
), progress as (
  update pawl.runs set done = coalesce(nullif($5::bigint, -1), done), total = coalesce(nullif($6::bigint, -1), total)
   where id = $1::text::uuid and $5::bigint <> -1
)
insert into pawl.checkpoints as c (job, key, revision, token, operation, value)
select m.job, m.key, m.revision, $2::bigint, $3::text::uuid, $4::text::jsonb from mine m
on conflict (job, key, revision) do update
   set token = excluded.token, operation = excluded.operation, value = excluded.value, at = clock_timestamp()
 where c.token <= excluded.token
returning coalesce((select operation::text from previous), '')`

// Checkpoint stores v, as JSON, so that it commits with tx, the transaction that [Run.Tx] gave. A later run of the
// period finds it by [Run.Resume].
func (r *Run) Checkpoint(ctx context.Context, tx pgx.Tx, v any) error {
	g, ok := tx.(*guarded)
	if !ok || g.run != r {
		return errors.New("jobs: Checkpoint needs the transaction that Run.Tx gave, not one of its own or a nested one")
	}
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("jobs: checkpoint of %s %s: %w", r.Job, r.Period.Key, err)
	}
	operation, previous := uuid.New(), ""
	done, total := r.progress()
	if r.snapshots() {
		done, total = -1, -1 // that row is written beside us: it would be 40001 for nothing
	}
	err = g.QueryRow(ctx, checkpointSQL, r.ID.String(), r.token.Seq, operation.String(), string(value), done, total).Scan(&previous)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("jobs: checkpoint of %s %s: the period is not this run's: %w", r.Job, r.Period.Key, fence.ErrNotHeld)
	case err != nil:
		return fence.Wrap(err, r.token)
	case g.operation == uuid.Nil:
		g.previous = previous
	}
	g.operation, g.value = operation, value
	return nil
}

// The guard keeps the lock's row until its transaction ends, and FOR UPDATE waits for that. The checkpoint itself can't be
// waited for: while the one that inserts it is under way, nobody sees it.
const (
	waitGuardSQL     = `select token from pawl.locks where name = $1 for update`
	askCheckpointSQL = `
select c.operation::text from pawl.runs r join pawl.checkpoints c on c.job = r.job and c.key = r.key and c.revision = r.revision where r.id = $1::text::uuid`
)

// askCheckpoint turns an unknown outcome into a known one: the operation id in the row tells whether it committed. It
// stays unknown when another transaction's checkpoint has followed: that one hides what was there before it.
func (r *Run) askCheckpoint(ctx context.Context, g *guarded, unknown error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	var token int64
	err := r.runner.pool.QueryRow(ctx, waitGuardSQL, r.token.Lock).Scan(&token)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) { // without a row nothing guarded is open
		return errors.Join(unknown, err)
	}
	var found string
	err = r.runner.pool.QueryRow(ctx, askCheckpointSQL, r.ID.String()).Scan(&found)
	switch {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return errors.Join(unknown, err)
	case found == g.operation.String():
		return nil
	case found == g.previous:
		return fmt.Errorf("jobs: %s %s: transaction was not committed, it may be tried again: %w", r.Job, r.Period.Key, ErrNotCommitted)
	}
	return unknown
}
