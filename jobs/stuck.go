package jobs

import (
	"context"
	"sync"
	"time"
)

// stick notes that a function ignores the end of its context: its slot takes no work until it returns.
func (r *Runner) stick(ctx context.Context, run *Run, cause error, since time.Time) {
	n := r.stuck.Add(1)
	r.metrics.Stuck.Set(float64(n))
	run.Logger().WarnContext(ctx, "function ignores its context: slot is stuck until it returns",
		"cause", cause, "ended_ago", time.Since(since).Round(time.Millisecond).String(), "stuck", n, "slots", r.cfg.Concurrency)
	go r.noteStuck(ctx, run, cause) // the caller watches the function
}

func (r *Runner) unstick(ctx context.Context, run *Run, err error) {
	n := r.stuck.Add(-1)
	r.metrics.Stuck.Set(float64(n))
	run.Logger().InfoContext(ctx, "stuck function has returned", "error", err, "stuck", n)
}

// runs are the runs of this process.
type runs struct {
	mu sync.Mutex
	m  map[*Run]struct{}
}

func (s *runs) add(run *Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[*Run]struct{}{}
	}
	s.m[run] = struct{}{}
}

func (s *runs) remove(run *Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, run)
}

func (s *runs) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.m)
}

// moved returns the runs whose progress hasn't been written yet.
func (s *runs) moved() (moved []*Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for run := range s.m {
		if done := run.done.Load() + 1; run.told.Load() && run.flushed.Swap(done) != done {
			moved = append(moved, run)
		}
	}
	return moved
}
