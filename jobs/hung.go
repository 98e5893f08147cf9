package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrPlannerHung says that the planner of this process stood still while the database answered: only a restart helps.
var ErrPlannerHung = errors.New("jobs: the planner is hung")

const (
	planPatience   = 5 * time.Minute
	leastPatience  = 4 * turnTimeout // in half of it a turn that the network has swallowed ends, and the next does its work
	looksInOne     = 20              // of the patience: how often it is looked at
	answersTimeout = 5 * time.Second
)

// stillness adds up for how long the planner hasn't completed a pass. Time in which nobody looked doesn't count: a process
// that was stopped, or slept, may plan first when it wakes.
type stillness struct {
	limit, waited time.Duration
	looked        time.Time
	passes        uint64
}

func (p *stillness) every() time.Duration { return p.limit / looksInOne }

// over reports whether the patience is over at now, when so many passes were completed.
func (p *stillness) over(now time.Time, passes uint64) bool {
	if p.looked.IsZero() || passes != p.passes {
		p.waited = 0
	} else {
		p.waited += min(now.Sub(p.looked), 2*p.every())
	}
	p.looked, p.passes = now, passes
	return p.waited >= p.limit
}

// watchPlanner ends the runner when the planner stands still although the database answers. A database that doesn't answer
// is waited for: a restart wouldn't bring it back.
func (r *Runner) watchPlanner(ctx context.Context) {
	p := stillness{limit: r.cfg.PlanPatience}
	tick := time.NewTicker(p.every())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		over := p.over(time.Now(), r.passes.Load())
		if p.waited < p.limit/2 {
			continue
		}
		// An outage isn't the planner's fault, and it may take a while to notice the end of one. The loop says that it fails.
		if err := r.answers(ctx); err != nil {
			p.waited = 0
			continue
		}
		if !over || r.passes.Load() != p.passes {
			continue
		}
		err := fmt.Errorf("%w: no pass for %s, though the database answers; this process ends, so that it is started again", ErrPlannerHung, p.limit)
		r.log.ErrorContext(ctx, "the planner is hung: the runner ends", "error", err)
		r.hung.Store(true)
		r.failed <- err
		return
	}
}

// asked makes a call to the database on a connection that nothing else uses.
func (r *Runner) asked(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answersTimeout)
	defer cancel()
	cfg := r.cfg.Pool.Config()
	one := cfg.ConnConfig.Copy()
	if cfg.BeforeConnect != nil { // it may read the password again
		if err := cfg.BeforeConnect(ctx, one); err != nil {
			return fmt.Errorf("before connect: %w", err)
		}
	}
	conn, err := pgx.ConnectConfig(ctx, one)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it has answered
	return conn.Ping(ctx)
}

// endAll ends what Run has begun. Of a runner that is hung nothing is waited for that may never come.
func (r *Runner) endAll(parts ...func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, part := range parts {
			part()
		}
	}()
	if !r.hung.Load() {
		<-done
		return
	}
	limit := time.NewTimer(drainPatience)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
	}
}
