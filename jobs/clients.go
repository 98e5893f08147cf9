package jobs

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
)

// clients are River's. One fetches the kinds that it was made with, so other jobs take another one; what the old one has
// under way it finishes.
type clients struct {
	renew func(names []string) (*river.Client[pgx.Tx], error)

	mu      sync.Mutex
	names   []string
	alerted []string // channels
	current *river.Client[pgx.Tx]
	old     []*river.Client[pgx.Tx] // that fetch no more
	ended   bool
	ending  sync.WaitGroup
}

// set makes the jobs and the channels of these names, sorted, the ones that are fetched for. No jobs: this process plans
// and sweeps for others, and delivers its alerts.
func (c *clients) set(ctx context.Context, names, channels []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.current != nil && slices.Equal(names, c.names) && slices.Equal(channels, c.alerted) {
		return nil
	}
	fresh, err := c.renew(names)
	if err != nil {
		return err
	}
	if old := c.current; old != nil {
		c.old = append(c.old, old)
		c.ending.Go(func() { // it fetches no more at once; its runs may take hours
			_ = old.Stop(context.WithoutCancel(ctx)) // there is no deadline
			c.mu.Lock()
			defer c.mu.Unlock()
			c.old = slices.DeleteFunc(c.old, func(x *river.Client[pgx.Tx]) bool { return x == old })
		})
	}
	c.current, c.names, c.alerted = fresh, names, channels
	return nil
}

// all are those that may have something under way; from now on there are no others.
func (c *clients) all() []*river.Client[pgx.Tx] {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	all := slices.Clone(c.old)
	if c.current != nil {
		all = append(all, c.current)
	}
	return all
}

// stop fetches no more and waits until ctx ends for what is under way.
func (c *clients) stop(ctx context.Context) error {
	return c.each(func(x *river.Client[pgx.Tx]) error { return x.Stop(ctx) })
}

// stopAndCancel is stop for who has no patience left.
func (c *clients) stopAndCancel(ctx context.Context) error {
	return c.each(func(x *river.Client[pgx.Tx]) error { return x.StopAndCancel(ctx) })
}

func (c *clients) each(f func(*river.Client[pgx.Tx]) error) error {
	all := c.all()
	errs := make([]error, len(all))
	var done sync.WaitGroup
	for i, x := range all {
		done.Go(func() { errs[i] = f(x) })
	}
	done.Wait()
	err := errors.Join(errs...)
	if err == nil {
		c.ending.Wait()
	}
	return err
}
