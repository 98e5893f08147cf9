package main

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

func (c *cli) jobShards() *cobra.Command {
	var revision int
	cmd := &cobra.Command{
		Use: "shards JOB PERIOD", Short: "List the shards of a period and what they add up to", Args: exactly("JOB", "PERIOD"),
		Long: `List the shards of a period and what they add up to.

A period of a job without shards has none. With --json it is one object.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHistory(cmd.Context(), func(_ *database, h *jobs.History) error {
				if err := knownJob(cmd.Context(), h, args[0]); err != nil {
					return err
				}
				s, err := h.Shards(cmd.Context(), args[0], args[1], revision)
				if err == nil && len(s.Shards) == 0 {
					err = knownRevision(cmd.Context(), h, args[0], args[1], revision)
				}
				if err != nil {
					return err
				}
				if c.p.json {
					return c.p.value(s)
				}
				heads := []string{"SHARD", "STATE", "REASON", "RUNS", "TOKEN", "HOLDER", "DONE", "ERROR"}
				err = list(c.p, s.Shards, "no shards", heads, func(x jobs.ShardRecord) []string {
					var seq int64
					if x.Token != nil {
						seq = *x.Token
					}
					return []string{x.Shard, x.State, or(x.Reason), thousands(int64(x.Attempts)), token(seq), or(x.Holder), shardDone(x.Done, x.Total), or(x.Error)}
				})
				if err == nil && len(s.Shards) > 0 {
					c.p.line("%s of %s complete, %s", thousands(int64(s.Complete)), plural(int64(len(s.Shards)), "shard", "shards"), shardDone(&s.Done, &s.Total))
				}
				return err
			})
		},
	}
	cmd.Flags().IntVar(&revision, "revision", 0, "of the period; 0 is the latest")
	return cmd
}

// knownRevision refuses a period without a row, and a revision that it hasn't come to; 0 is the latest.
func knownRevision(ctx context.Context, h *jobs.History, job, period string, revision int) error {
	if err := known(ctx, h, job, period); err != nil || revision == 0 {
		return err
	}
	last, err := h.Latest(ctx, job, period)
	if err == nil && (revision < 1 || revision > last.Revision) {
		return usage("--revision is %d: %s %s has revisions 1 to %d", revision, job, period, last.Revision)
	}
	return err
}

func shardDone(done, total *int64) string {
	switch {
	case done == nil:
		return "–"
	case total == nil || *total == 0:
		return thousands(*done) + " done"
	}
	return thousands(*done) + " of " + thousands(*total)
}
