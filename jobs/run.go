package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"pawl/fence"
	"pawl/jobs/schedule"
	"pawl/lockrepo"
)

// Run is one attempt at a period, under one token. Its methods may be called from several goroutines.
type Run struct {
	ID          uuid.UUID // also the grant id of its lease
	Job         string
	Period      schedule.Period
	Revision    int       // of the period; a rerun has a larger one
	Attempt     int       // 1, 2, …
	ScheduledAt time.Time // when the period was due, UTC
	Shard       Shard     // which part of the period it works; its Key is empty if the job has no shards
	Params      Params    // what Job.Params declares: what was given to the period, else the defaults; nil without any

	runner     *Runner
	job        Job
	most       int // runs that the period may have
	token      fence.Token
	lease      lockrepo.Lease
	kept       *lockrepo.Kept
	delivery   int64
	checkpoint []byte
	more       bool   // another period of the lock was open
	reduces    bool   // its period was fanned out before
	heir       string // id of the run that a hand-over would start

	done, total, flushed atomic.Int64              // flushed: the last done that was written, plus one
	mu                   sync.Mutex                // guards checkpoint
	ending               sync.Mutex                // held while the run ends
	told                 atomic.Bool               // Progress was called
	ended, completed     atomic.Bool               // completed: by Complete
	outside              atomic.Bool               // Outside was called
	until                atomic.Pointer[time.Time] // the runner doesn't wait longer; nil while the context lives
}

// Token returns the fencing token of this run: pass it along to whatever the run writes.
func (r *Run) Token() fence.Token { return r.token }

// Holder returns the name under which this process holds the lock.
func (r *Run) Holder() string { return r.runner.cfg.Holder }

// Logger returns a logger that adds lock, token, job, period and run.
func (r *Run) Logger() *slog.Logger {
	return r.runner.log.With("lock", r.token.Lock, "token", r.token.Seq, "job", r.Job, "period", r.rowKey(),
		"run", r.ID.String(), "attempt", r.Attempt)
}

// Resume reads the checkpoint that an earlier run of the period (or this one) has left into v. False: there is none.
func (r *Run) Resume(v any) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.checkpoint == nil {
		return false, nil
	}
	if err := json.Unmarshal(r.checkpoint, v); err != nil {
		return false, fmt.Errorf("jobs: checkpoint of %s %s doesn't fit %T: %w", r.Job, r.Period.Key, v, err)
	}
	return true, nil
}

// Progress says how much of the work is done, in any unit. It is written once a second; total 0 means unknown.
func (r *Run) Progress(done, total int64) {
	r.total.Store(total)
	r.done.Store(done)
	r.told.Store(true)
}

// progress is what Progress was told last, or -1.
func (r *Run) progress() (done, total int64) {
	if !r.told.Load() {
		return -1, -1
	}
	done, total = r.done.Load(), r.total.Load()
	if total == 0 {
		total = -1
	}
	return done, total
}

// alive answers nil while the run may write, or why not. When somebody has set the clock it waits for a renewal: that must
// not cost a run.
func (r *Run) alive(ctx context.Context) error {
	if r.ended.Load() {
		return fmt.Errorf("jobs: %s %s: %w", r.Job, r.Period.Key, ErrEnded)
	}
	return r.kept.Sure(ctx)
}

// refused records a write that the fence has turned away and counts it.
func (r *Run) refused(ctx context.Context, err error, statement string) {
	if !errors.Is(err, fence.ErrStale) && !errors.Is(err, fence.ErrNotHeld) {
		return
	}
	r.Logger().WarnContext(ctx, "write refused", "statement", statement, "error", err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	target := ""
	var stale *fence.StaleError
	if errors.As(err, &stale) {
		target = stale.Target
	}
	for try := 1; ; try++ { // a connection that was cut off is no reason to forget a refusal
		err := fence.Refused(ctx, r.runner.pool, r.token, target, statement)
		if err == nil {
			return
		}
		if try == 3 || ctx.Err() != nil {
			r.Logger().WarnContext(ctx, "refusal not recorded", "error", err)
			return
		}
	}
}
