package jobs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"pawl/internal/gather"
	"pawl/lockrepo"
)

// One delivery works at most this many periods of its lock, for at most this long; then the rest goes through the
// queue, so that other locks get their turn.
const (
	mostPeriods = 16
	mostTime    = 5 * time.Second
)

// patience is how long a function may ignore that its context has ended before its slot counts as stuck.
const patience = 3 * time.Second

// lock works off what is owed under one lock, as a delivery found it.
func (r *Runner) lock(ctx context.Context, name string, delivery int64) {
	run := r.begin(ctx, name, delivery)
	for n, since := 1, time.Now(); run != nil; n++ {
		more := n < mostPeriods && time.Since(since) < mostTime && !r.draining.Load()
		run = r.period(ctx, run, more)
	}
}

// begin starts the oldest period that may run. Nil: there is none, or the lock is held.
func (r *Runner) begin(ctx context.Context, name string, delivery int64) *Run {
	q := startRequest{lock: name, grant: uuid.New(), delivery: delivery}
	for adopted := false; ; adopted = true {
		s, err := r.sendStart(ctx, q)
		switch {
		case err != nil:
			// The backstop ends this delivery, and the sweep the run, if there is one.
			r.log.WarnContext(ctx, "start had no answer", "lock", name, "error", err)
			return nil
		case s.outcome == outcomeLate:
			if err := r.expire(ctx, name); err != nil {
				r.log.WarnContext(ctx, "what is too late isn't recorded yet: the backstop does it", "lock", name, "error", err)
			}
			return nil // another delivery has been made for what comes next
		case s.outcome != outcomeAdopt || adopted:
			return s.run
		}
		if err := r.adopt(ctx); err != nil {
			r.log.ErrorContext(ctx, "server has restarted and isn't adopted", "lock", name, "error", err)
			return nil
		}
	}
}

// sendStart sends a start until it is answered, for a while.
func (r *Runner) sendStart(ctx context.Context, q startRequest) (s started, err error) {
	sent := lockrepo.Now()
	err = r.insist(ctx, callTimeout, func() (err error) {
		s, err = r.starts.Do(context.WithoutCancel(ctx), q)
		if gather.Refused(err) {
			sent = lockrepo.Now() // nothing was done
		} else if err != nil {
			if run, findErr := r.findRun(ctx, q.grant, q.lock, sent); run != nil {
				s, err = started{outcomeStarted, run}, nil
			} else {
				err = errors.Join(err, findErr)
			}
		}
		return err
	})
	return s, err
}

func (r *Runner) adopt(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	return r.repo.Adopt(ctx, false)
}

// period runs one period to its end. With more the next one of the lock may follow in the same transaction; it is
// returned.
func (r *Runner) period(root context.Context, run *Run, more bool) *Run {
	ctx, stop := r.context(root, run)
	defer stop()
	r.live.add(run)
	defer r.live.remove(run)
	if run.Attempt == 1 && run.Revision == 1 && !run.job.sharded() {
		r.metrics.Lateness.WithLabelValues(run.Job).Observe(run.lease.AcquiredAt.Sub(run.ScheduledAt).Seconds())
	}
	if r.log.Enabled(ctx, slog.LevelInfo) {
		run.Logger().InfoContext(ctx, "run started", "acquired_at", run.lease.AcquiredAt, "expires_at", run.lease.ExpiresAt)
	}
	outcome, err := r.call(ctx, run, root.Done())
	switch {
	case run.completed.Load():
		r.ended(ctx, run, stateComplete, true, err)
		return nil
	case run.ended.Load(): // abandoned, or fanned out
		return nil
	}
	if outcome == stateComplete && more && run.more {
		if next := r.next(ctx, run); next != nil {
			r.ended(ctx, run, stateComplete, true, nil)
			return next
		}
	}
	if !r.finish(ctx, run, outcome, err) {
		return r.again(root, run)
	}
	return nil
}

// context is what the function gets: it ends with the lease, the timeout or the process, and says which.
func (r *Runner) context(ctx context.Context, run *Run) (context.Context, func()) {
	cancel, unwarn := func() {}, func() {}
	if run.job.Timeout != NoTimeout {
		unwarn = r.warnOfTimeout(ctx, run)
		ctx, cancel = context.WithTimeoutCause(ctx, run.job.Timeout, ErrTimeout)
	}
	ctx, run.kept = r.repo.Keep(ctx, run.lease)
	return ctx, func() { run.kept.Stop(); cancel(); unwarn() }
}

// call runs the function and waits for it, at most grace longer than its context lives. A function that hasn't
// returned by then loses its token; its slot is free when it returns at last. When the process is out of grace so is the
// function.
func (r *Runner) call(ctx context.Context, run *Run, out <-chan struct{}) (outcome string, err error) {
	done := make(chan error, 1)
	go protect(ctx, run, done)
	select {
	case err = <-done:
		return r.outcomeOf(ctx, err), err
	case <-ctx.Done():
	}
	cause, since := context.Cause(ctx), time.Now()
	grace := time.NewTimer(run.endsIn(r.grace(run, cause)))
	defer grace.Stop()
	ignored := time.NewTimer(min(patience, r.grace(run, cause)))
	defer ignored.Stop()
	stuck := false
	for {
		select {
		case err = <-done:
			if stuck {
				r.unstick(ctx, run, err)
			}
			return r.outcomeOf(ctx, err), because(cause, err)
		case <-out:
			out = nil
			grace.Reset(run.endsIn(min(drainPatience, r.grace(run, cause))))
		case <-ignored.C:
			if !run.outside.Load() {
				stuck = true
				r.stick(ctx, run, cause, since)
			}
		case <-grace.C:
			if !stuck {
				r.stick(ctx, run, cause, since)
			}
			if run.outside.Load() {
				return r.outlast(ctx, run, done, cause)
			}
			r.abandon(ctx, run, done, cause, since)
			return stateLost, cause
		}
	}
}

// grace is how long a function may take to return once its context has ended: the lease is renewed meanwhile, unless
// the lease itself is what was lost.
func (r *Runner) grace(run *Run, cause error) time.Duration {
	grace := cmp.Or(run.job.Grace, r.cfg.Grace)
	var lost *lockrepo.LostError
	if errors.As(cause, &lost) {
		return min(grace, patience)
	}
	if errors.Is(cause, ErrDrained) {
		return drainPatience
	}
	return grace
}

// outlast waits for a function that has something running outside, without renewals: a release now would let a successor
// start beside it.
func (r *Runner) outlast(ctx context.Context, run *Run, done <-chan error, cause error) (outcome string, err error) {
	run.kept.Revoke(cause)
	select {
	case err = <-done:
		r.unstick(ctx, run, err)
		return r.outcomeOf(ctx, err), because(cause, err)
	case <-r.gone:
		return stateLost, cause
	}
}

// abandon ends the run of a function that doesn't return, so that a successor may start, and keeps the slot until it
// does return.
func (r *Runner) abandon(ctx context.Context, run *Run, done <-chan error, cause error, since time.Time) {
	err := &StuckError{Job: run.Job, Period: run.Period.Key, Cause: cause, After: time.Since(since)}
	run.kept.Revoke(cause)
	r.finish(ctx, run, outcomeOfCause(cause), err)
	select {
	case late := <-done:
		r.unstick(ctx, run, late)
	case <-r.gone:
	}
	run.ended.Store(true)
}

var errExited = errors.New("jobs: function ended its goroutine instead of returning")

// protect calls the function. A panic is an error, so is the end of its goroutine (runtime.Goexit, as by a test's
// FailNow), and so is an error that panics when it is read, such as a nil pointer: better here than where the run ends.
func protect(ctx context.Context, run *Run, done chan<- error) {
	err := errExited
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: userStack(debug.Stack())}
		}
		done <- err
	}()
	returned := run.loadParams(ctx)
	if returned == nil {
		returned = run.work(ctx)
	}
	if returned != nil {
		_ = returned.Error()
	}
	err = returned
}

// userStack leaves out the frames above the panic: they are the recovery's.
func userStack(stack []byte) []byte {
	if _, after, ok := bytes.Cut(stack, []byte("\npanic(")); ok {
		if _, user, ok := bytes.Cut(after, []byte("\n\t")); ok {
			if _, user, ok = bytes.Cut(user, []byte("\n")); ok {
				return user
			}
		}
	}
	return stack
}

// because is the cause of a context's end with what the function said of it, if that says more.
func because(cause, err error) error {
	if err == nil {
		return nil // it has done its work all the same
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return cause
	}
	if errors.Is(err, cause) {
		return err
	}
	return errors.Join(cause, err)
}

// retryAfter is exponential with full jitter and a floor of one second; a drained run is tried at once.
func (run *Run) retryAfter(outcome string, cause error) time.Duration {
	if errors.As(cause, new(*noPermitError)) {
		return jitter(permitEvery)
	}
	if outcome != stateFailed && outcome != stateTimedOut {
		return 0
	}
	limit := run.job.RetryMaxDelay
	if shift := run.Attempt - 1; run.job.RetryDelay <= limit>>shift { // never doubled beyond what a duration can say
		limit = run.job.RetryDelay << shift
	}
	return max(time.Second, rand.N(limit), retryAsked(cause))
}
