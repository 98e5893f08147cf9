package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

// retryFlags are what retry can be told.
type retryFlags struct {
	reason               string
	allDead, yes, dryRun bool
}

// retried is what came of a retry of all dead periods.
type retried struct {
	Job     string   `json:"job"`
	DryRun  bool     `json:"dry_run"`
	Periods []string `json:"periods"` // that are owed again, or would be
	Refused []string `json:"refused"` // that have changed meanwhile, each with a sentence
	More    bool     `json:"more"`    // others are dead, too
}

func (c *cli) jobRetry() *cobra.Command {
	var f retryFlags
	cmd := &cobra.Command{
		Use: "retry JOB PERIOD | JOB --all-dead --reason TEXT", Short: "Owe a dead period again, with all its retries",
		Long: `Owe a dead period again, with all its retries. What waits behind it waits until it is complete.

--all-dead owes all dead periods of the job, the oldest first, at most 100 at once, each with a row of the audit. It
prints the list first: on a terminal it asks then, elsewhere it needs --yes; --dry-run stops after the list. No dead
period is exit code 3.`,
		Example: `  pawl job retry settle 2026-09-16
  pawl job retry settle --all-dead --reason "the bank is back" --yes`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.allDead {
				return exactly("JOB")(cmd, args)
			}
			return exactly("JOB", "PERIOD")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(readsTerminal(c.stdin)); err != nil {
				return err
			}
			return c.withHistory(cmd.Context(), func(db *database, h *jobs.History) error {
				if f.allDead {
					return c.retryAll(cmd.Context(), db, h, args[0], f)
				}
				if err := jobs.RetryAs(cmd.Context(), db.pool, args[0], args[1], jobs.By{Actor: actor(), Reason: strings.TrimSpace(f.reason)}); err != nil {
					return err
				}
				return c.act(acted{args[0], args[1], 0, "retry", 1, nil}, "%s %s is owed again", clean(args[0]), clean(args[1]))
			})
		},
	}
	reasonFlag(cmd, &f.reason)
	cmd.Flags().BoolVar(&f.allDead, "all-dead", false, "all dead periods of the job")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "don't ask")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only print the list")
	return cmd
}

func (f retryFlags) check(canAsk bool) error {
	switch {
	case !f.allDead && (f.yes || f.dryRun):
		return usage("--yes and --dry-run go with --all-dead only: one period is retried without a question")
	case f.allDead && !f.yes && !f.dryRun && !canAsk:
		return usage("nobody can be asked here: say --yes, or --dry-run to see the list only")
	case f.allDead && !f.dryRun, f.reason != "":
		return checkReason(f.reason)
	}
	return nil
}

func (c *cli) retryAll(ctx context.Context, db *database, h *jobs.History, job string, f retryFlags) error {
	if _, err := h.Job(ctx, job); err != nil {
		return err
	}
	dead, err := h.Dead(ctx, job, jobs.MostRetried+1)
	if err != nil {
		return err
	}
	out := retried{Job: job, DryRun: f.dryRun, Periods: []string{}, Refused: []string{}, More: len(dead) > jobs.MostRetried}
	dead = dead[:min(len(dead), jobs.MostRetried)]
	if len(dead) == 0 {
		return conflict("nothing to retry: no period of %s is dead", job)
	}
	c.printDead(dead, out.More)
	if !f.dryRun && !f.yes && !c.agrees(plural(len(dead), "period", "periods")+" of "+job) {
		return conflict("nothing was retried: you didn't say yes")
	}
	for _, p := range dead {
		if !f.dryRun {
			err = jobs.RetryAs(ctx, db.pool, job, p.Key, jobs.By{Actor: actor(), Reason: strings.TrimSpace(f.reason), Seen: p.Seen()})
		}
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil {
			out.Refused = append(out.Refused, p.Key+": "+reasonOf(err))
			c.p.note("%s isn't retried: %s", clean(p.Key), clean(reasonOf(err)))
			continue
		}
		out.Periods = append(out.Periods, p.Key)
	}
	return c.toldRetried(out)
}

func (c *cli) printDead(dead []jobs.PeriodRecord, more bool) {
	if c.p.json {
		return
	}
	for _, p := range dead {
		c.p.line("%s  dead after %s", clean(p.Key), plural(p.Attempts, "run", "runs"))
	}
	if more {
		c.p.note("the oldest %d; others are dead, too: say it again for them", len(dead))
	}
}

func (c *cli) toldRetried(out retried) error {
	if c.p.json {
		if err := c.p.value(out); err != nil {
			return err
		}
	}
	if len(out.Refused) > 0 {
		return conflict("%d of %d were retried: the others have changed meanwhile", len(out.Periods), len(out.Periods)+len(out.Refused))
	}
	if !out.DryRun {
		c.p.note("%s of %s owed now", plural(len(out.Periods), "period", "periods"), clean(out.Job))
	}
	return nil
}

func reasonOf(err error) string { return strings.TrimPrefix(err.Error(), "jobs: ") }
