package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"pawl/examples/settlement"
	"pawl/fence"
	"pawl/jobs"
)

// The demo is over soon, so its leases are short; and slow enough to watch.
const (
	demoTTL    = 3 * time.Second
	demoGrace  = 2 * time.Second
	demoPause  = 150 * time.Millisecond // between two batches, with no transaction open
	demoInside = 100 * time.Millisecond // within a batch's transaction, its rows written and not committed
)

func (c *cli) demoWorker() *cobra.Command {
	var name, schedule, start string
	cmd := &cobra.Command{
		Use: "demo-worker", Short: "One of the demo's workers", Args: exactly(), Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := time.Parse(time.RFC3339, start)
			if err != nil {
				return usage("--start is %q: use a time such as 2026-09-16T00:00:00Z", start)
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go func() { // the demo is gone when this pipe ends
				_, _ = io.Copy(io.Discard, c.stdin)
				cancel()
			}()
			return c.work(ctx, name, schedule, from)
		},
	}
	cmd.Flags().StringVar(&name, "name", "worker", "name")
	cmd.Flags().StringVar(&schedule, "schedule", "", "schedule")
	cmd.Flags().StringVar(&start, "start", "", "ticks after it are owed")
	return cmd
}

func (c *cli) work(ctx context.Context, name, schedule string, start time.Time) error {
	log, err := c.logger()
	if err != nil {
		return err
	}
	db, err := c.open(ctx, 6)
	if err != nil {
		return err
	}
	defer db.pool.Close()
	runner, err := jobs.New(jobs.Config{
		Pool: db.pool, Holder: holderOf(name, os.Getpid()), Concurrency: 1, Grace: demoGrace, Logger: log,
	})
	if err != nil {
		return err
	}
	j := settlement.New(settlement.Config{Pause: lasting(demoPause), Inside: lasting(demoInside)}).Job()
	j.Schedule, j.Start, j.TTL, j.RetryDelay = schedule, start, demoTTL, time.Second
	j.Func = deaf(j.Func, db.pool)
	if err := runner.Add(j); err != nil {
		return err
	}
	return runner.Run(ctx)
}

// lasting makes each batch take a while.
func lasting(d time.Duration) func(context.Context, int) error {
	return func(ctx context.Context, _ int) error {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
			return nil
		}
	}
}

const lateSQL = `update pawl_demo.settlement set settled_at = clock_timestamp() where day = $1::date and last_token = $2`

// deaf is a function as it shouldn't be: it doesn't hear that its lease is lost, and when pawl's own check stops it,
// it goes round that and writes all the same, straight to the database. Only a shutdown ends it.
func deaf(do jobs.Func, pool *pgxpool.Pool) jobs.Func {
	return func(ctx context.Context, run *jobs.Run) error {
		own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		defer cancel(nil)
		defer context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), jobs.ErrDrained) {
				cancel(jobs.ErrDrained)
			}
		})()
		err := do(own, run)
		if err == nil || own.Err() != nil {
			return err
		}
		what := fence.Options{TTL: demoTTL, Statement: lateWrite}
		late := fence.DoWith(own, pool, run.Token(), what, func(tx pgx.Tx) error {
			_, err := tx.Exec(own, lateSQL, run.Period.Key, run.Token().Seq)
			return err
		})
		if late == nil {
			return err
		}
		return fmt.Errorf("%w; and then: %w", err, late)
	}
}

// lateWrite is what the record of a refusal calls the write past pawl's own check.
const lateWrite = "late write, past the check"
