package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

func (c *cli) job() *cobra.Command {
	cmd := &cobra.Command{
		Use: "job", Short: "Show what is owed, what ran and what it said; pause, trigger, rerun, cancel, retry, retire", Args: noCommand, RunE: help,
	}
	cmd.AddCommand(c.jobList(), c.jobTrigger(), c.jobHistory(), c.jobShards(), c.jobOutput(), c.jobRetire(), c.jobPause(), c.jobResume(), c.jobRerun(), c.jobRetry(), c.jobCancel())
	return cmd
}

// withHistory runs fn on what the database knows of jobs.
func (c *cli) withHistory(ctx context.Context, fn func(*database, *jobs.History) error) error {
	db, err := c.openMigrated(ctx, 2)
	if err != nil {
		return err
	}
	defer db.pool.Close()
	return fn(db, jobs.NewHistory(db.pool))
}

// known refuses a job that isn't stored, and a period of it without a row. Empty names are not asked about. It is for lists that
// are empty: what a job has left behind is listed, whether or not it is stored still.
func known(ctx context.Context, h *jobs.History, job, period string) error {
	if job == "" {
		return nil
	}
	if err := knownJob(ctx, h, job); err != nil || period == "" {
		return err
	}
	_, err := h.Latest(ctx, job, period)
	if errors.Is(err, jobs.ErrUnknownPeriod) { // a tick may share the row of others
		if w, whyErr := h.Why(ctx, job, period); whyErr == nil && w.State != "" {
			return nil
		}
	}
	return err
}

// knownJob refuses a job that isn't stored.
func knownJob(ctx context.Context, h *jobs.History, name string) error {
	all, err := h.Jobs(ctx)
	if err != nil {
		return err
	}
	for _, j := range all {
		if j.Job == name {
			return nil
		}
	}
	return fmt.Errorf("%w %q: no schedule of that name is stored; list them with: pawl job ls", jobs.ErrUnknownJob, name)
}
