package main

import (
	"context"
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
