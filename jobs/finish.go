package jobs

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/internal/gather"
	"pawl/lockrepo"
)

// next ends the run and starts the lock's next period in one transaction. Nil: that wasn't done, end the run alone.
func (r *Runner) next(ctx context.Context, run *Run) *Run {
	run.ending.Lock()
	defer run.ending.Unlock()
	run.kept.Completing()
	sent := lockrepo.Now()
	next, err := r.handovers.Do(context.WithoutCancel(ctx), run)
	if gather.Refused(err) { // nothing was done
		run.kept.Resume()
		return nil
	}
	if err != nil {
		state := ""
		askErr := r.insist(ctx, run.lease.TTL, func() (err error) { state, _, err = r.ask(ctx, run); return err })
		if askErr != nil || state != stateComplete {
			run.kept.Resume()
			return nil
		}
		// It was committed after all, and only its answer was lost: go on with the run that it has started.
		heir := uuid.MustParse(run.heir)
		err = r.insist(ctx, run.lease.TTL, func() (err error) { next, err = r.findRun(ctx, heir, run.token.Lock, sent); return err })
		if err != nil {
			run.Logger().WarnContext(ctx, "hand-over had no answer", "error", err)
		}
		run.ended.Store(true)
		return next
	}
	if next != nil {
		run.ended.Store(true)
	}
	return next
}

// finish ends the run in the database. A run whose lease is gone is ended by the sweep of whoever notices first. False:
// the fence has refused the end.
func (r *Runner) finish(ctx context.Context, run *Run, outcome string, cause error) (ok bool) {
	run.ending.Lock()
	defer run.ending.Unlock()
	if run.ended.Swap(true) {
		return true
	}
	if outcome == stateLost {
		run.kept.Revoke(cause)
		r.ended(ctx, run, outcome, false, cause)
		r.wakeSweep()
		return false
	}
	ok, err := r.sendEnd(ctx, run, endRequest{run, outcome, run.retryAfter(outcome, cause), message(cause)})
	if err != nil {
		run.Logger().ErrorContext(ctx, "end of run had no answer: its lease runs out and the sweep ends it", "error", err)
		return false
	}
	r.ended(ctx, run, outcome, ok, cause)
	return ok
}

// again starts the lock's oldest period once more if the database has forgotten run: a standby was promoted that didn't
// have its start yet, but knows the delivery as one that is being worked. The sweep can't find such a run, and the backstop
// only after a while.
func (r *Runner) again(ctx context.Context, run *Run) *Run {
	if r.draining.Load() {
		return nil
	}
	if state, _, err := r.ask(ctx, run); err != nil || state != stateGone {
		return nil
	}
	run.Logger().WarnContext(ctx, "run is not in the database: its start was lost in a failover; the period is started again")
	return r.begin(ctx, run.token.Lock, run.delivery)
}

// sendEnd sends an end until it is answered, or the lease is over: a server that is away for a moment must not cost the
// work that was done.
func (r *Runner) sendEnd(ctx context.Context, run *Run, q endRequest) (ok bool, err error) {
	send := func() (bool, error) { return r.ends.Do(context.WithoutCancel(ctx), q) }
	err = r.insist(ctx, max(run.lease.TTL, callTimeout), func() error {
		run.kept.Completing()
		ok, err = send()
		if send = func() (bool, error) { return r.sendAgain(ctx, q) }; gather.Refused(err) {
			run.kept.Resume() // nothing was done: the lease lives on
		}
		return err
	})
	return ok, err
}

// sendAgain asks what became of an end without an answer, and sends it once more if it didn't commit.
func (r *Runner) sendAgain(ctx context.Context, q endRequest) (bool, error) {
	state, ended, err := r.ask(ctx, q.run)
	if err != nil || ended {
		return state == runState(q.outcome), err
	}
	ok, err := r.ends.Do(context.WithoutCancel(ctx), q)
	if err == nil && !ok { // the first one was still on its way
		state, _, err = r.ask(ctx, q.run)
		ok = state == runState(q.outcome)
	}
	return ok, err
}

const askEvery = 100 * time.Millisecond // and up to ten times that

// insist asks until there is an answer: at least four times, and unless the process shuts down for as long as limit.
func (r *Runner) insist(ctx context.Context, limit time.Duration, ask func() error) (err error) {
	for try, since := 1, time.Now(); ; try++ {
		if err = ask(); err == nil || errors.Is(err, gather.ErrClosed) {
			return err
		}
		if try >= 4 && (r.draining.Load() || time.Since(since) > limit) {
			return err
		}
		wait(context.WithoutCancel(ctx), jitter(min(askEvery<<min(try-1, 9), 10*askEvery)), nil)
	}
}

// ended logs and counts what has become of a run; ok is false when the fence refused its end.
func (r *Runner) ended(ctx context.Context, run *Run, outcome string, ok bool, cause error) {
	log := run.Logger()
	if run.kept != nil {
		log = log.With("took", time.Since(run.lease.AcquiredAt).Round(time.Millisecond).String())
	}
	switch {
	case !ok && outcome != stateLost:
		log.WarnContext(ctx, "end of run refused: its lease was not live any more; the period is owed again", "outcome", outcome)
		if !errors.Is(cause, fence.ErrStale) && !errors.Is(cause, fence.ErrNotHeld) { // else it is on record already
			r.refusedEnd(ctx, run, outcome)
		}
	case outcome == stateComplete && cause == nil:
		log.InfoContext(ctx, "run complete")
	case outcome == stateComplete:
		log.WarnContext(ctx, "function returned an error after it had completed the period", "error", cause)
	case outcome == stateSkipped:
		log.InfoContext(ctx, "period skipped", "reason", message(cause))
	case outcome == stateDrained:
		log.InfoContext(ctx, "run drained: it costs no attempt", "error", cause)
	default:
		log.WarnContext(ctx, "run ended", "outcome", outcome, "error", message(cause), "attempts_left", run.most-run.Attempt)
	}
	r.count(ctx, run, outcome, ok)
	switch {
	case ok && run.Shard.Key != "":
		r.trySettle(ctx, run)
	case ok && outcome == stateComplete:
		r.wakeDependents(ctx, run.Job, run.Period.Key)
	}
}

// count counts the period's new state.
func (r *Runner) count(ctx context.Context, run *Run, outcome string, ok bool) {
	switch {
	case !ok || run.Shard.Key != "": // a shard is no period
		return
	case outcome == stateComplete:
		r.metrics.Periods.WithLabelValues(run.Job, "complete", "").Inc()
	case outcome == stateSkipped:
		r.metrics.Periods.WithLabelValues(run.Job, "skipped", reason(outcome)).Inc()
	case outcome == stateFinal || outcome == stateUncertain || outcome != stateDrained && run.Attempt >= run.most:
		r.log.ErrorContext(ctx, "period is dead: no run of it is left", "job", run.Job, "period", run.Period.Key, "runs", run.Attempt, "outcome", outcome)
		r.metrics.Periods.WithLabelValues(run.Job, "dead", reason(outcome)).Inc()
		if run.job.OnDead == OnDeadPause {
			r.tryPauseDead(ctx, run.Job)
		}
	}
}

func (r *Runner) refusedEnd(ctx context.Context, run *Run, outcome string) {
	run.refused(ctx, &fence.StaleError{Token: run.token, Code: fence.CodeNotHeld}, "end "+outcome)
}

// storable replaces what Postgres takes in no text: bytes that aren't UTF-8, also half a character at a cut, and NUL.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

func message(err error) string {
	if err == nil {
		return ""
	}
	s := err.Error()
	var p *PanicError
	if errors.As(err, &p) {
		s += "\n" + string(p.Stack)
	}
	s = storable(s)
	if len(s) > 4000 {
		s = storable(s[:4000])
	}
	return s
}

// The lane was written by the start, whatever it found: FOR UPDATE on it waits for the end of a transaction whose
// reply was lost.
const (
	waitLaneSQL = `select seq from pawl.lanes where lock = $1 for update`
	findRunSQL  = `
select p.run::text, p.token, p.job, p.key, p.revision, p.attempts, p.max_attempts, p.scheduled_at, p.start_at, p.end_at,
       g.acquired_at, g.expires_at, c.value,
       exists (select from pawl.periods n where n.lock = p.lock and n.ended_at is null and n.waits is null and n.state = 'open'), p.shards is not null, r.delivery
  from pawl.runs r join pawl.periods p on p.job = r.job and p.key = r.key and p.revision = r.revision and p.run = r.id
  join pawl.locks g on g.name = r.lock and g.grant_id = r.id
  left join pawl.checkpoints c on c.job = p.job and c.key = p.key and c.revision = p.revision
 where r.id = $1::text::uuid and r.ended_at is null`
)

// findRun looks for the run of a start that had no answer. Nil: it wasn't committed.
func (r *Runner) findRun(ctx context.Context, id uuid.UUID, lock string, sent lockrepo.Instant) (*Run, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	var x runRow
	var delivery *int64
	var seq int64
	if err := r.pool.QueryRow(ctx, waitLaneSQL, lock).Scan(&seq); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	err := r.pool.QueryRow(ctx, findRunSQL, id.String()).Scan(append(x.dest(), &delivery)...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return r.run(r.handled(), x, lock, deref(delivery), sent), nil
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
