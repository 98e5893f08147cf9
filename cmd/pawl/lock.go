package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"pawl/fence"
	"pawl/lockrepo"
)

func (c *cli) lock() *cobra.Command {
	cmd := &cobra.Command{
		Use: "lock", Short: "Show who holds what, or ask for a release by force", Args: noCommand, RunE: help,
	}
	cmd.AddCommand(c.lockList(), c.lockShow(), c.lockHistory(), c.lockRelease())
	return cmd
}

// withLocks runs fn on the locks of the database.
func (c *cli) withLocks(ctx context.Context, fn func(*lockrepo.Repo) error) error {
	db, err := c.openMigrated(ctx, 2)
	if err != nil {
		return err
	}
	defer db.pool.Close()
	repo, err := lockrepo.New(lockrepo.Config{Pool: db.pool}) //nolint:contextcheck // heartbeats end with Close
	if err != nil {
		return err
	}
	defer repo.Close()
	return fn(repo)
}

// token is a token's number for people; 0 is none.
func token(seq int64) string {
	if seq == 0 {
		return "-"
	}
	return fence.FormatSeq(seq)
}

// since is the time between two moments that are both known.
func since(from, to *time.Time) string {
	if from == nil || to == nil {
		return "-"
	}
	return humanise(to.Sub(*from))
}
