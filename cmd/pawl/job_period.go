package main

import (
	"strings"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

func (c *cli) jobRerun() *cobra.Command {
	var reason string
	var given []string
	var effects bool
	cmd := &cobra.Command{
		Use: "rerun JOB PERIOD --reason TEXT", Short: "Let a complete period run again, as a new revision", Args: exactly("JOB", "PERIOD"),
		Long: `Let a complete period run again, as a new revision. The old one stays in the history as it is.

A receiver of an http job is sent the same idempotency key as before, so that one that keeps keys does nothing
twice. --repeat-effects sends a new key, and prints first what is sent again under which.`,
		Example: `  pawl job rerun settle 2026-09-16 --reason "the rates of that day were wrong"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReason(reason); err != nil {
				return err
			}
			params, err := readParams(given)
			if err != nil {
				return err
			}
			return c.withHistory(cmd.Context(), func(db *database, _ *jobs.History) error {
				var sends []jobs.Effect
				if effects {
					if sends, err = jobs.RerunEffects(cmd.Context(), db.pool, args[0], args[1]); err != nil {
						return err
					}
					c.announce(sends)
				}
				cfg := jobs.RerunConfig{Actor: actor(), Reason: strings.TrimSpace(reason), RepeatEffects: effects, Params: params}
				n, err := jobs.Rerun(cmd.Context(), db.pool, args[0], args[1], cfg)
				if err != nil {
					return err
				}
				return c.act(acted{args[0], args[1], n, "rerun", 1, sends}, "%s %s is owed again, as revision %d", clean(args[0]), clean(args[1]), n)
			})
		},
	}
	reasonFlag(cmd, &reason)
	paramFlag(cmd, &given)
	cmd.Flags().BoolVar(&effects, "repeat-effects", false, "what was sent to others is sent again, under a new idempotency key")
	return cmd
}

// announce prints what will be sent again.
func (c *cli) announce(sends []jobs.Effect) {
	if len(sends) == 0 {
		c.p.note("what the job sends, its definition doesn't say: its work finds by the revision that this is a repetition")
		return
	}
	c.p.note("will be sent again:")
	for _, s := range sends {
		c.p.note("  %s  Idempotency-Key: %s", clean(s.Request), clean(s.Key))
	}
}

func (c *cli) jobCancel() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "cancel JOB PERIOD --reason TEXT", Short: "End a period that isn't complete: it doesn't run any more", Args: exactly("JOB", "PERIOD"),
		Long: `End a period that waits, is held, runs or is dead: it doesn't run any more. A run that is under way loses its
lease at once: what it hasn't committed yet it can't commit any more. What waited behind a dead period goes on.`,
		Example: `  pawl job cancel settle 2026-09-16 --reason "settled by hand"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReason(reason); err != nil {
				return err
			}
			return c.withHistory(cmd.Context(), func(db *database, _ *jobs.History) error {
				if err := jobs.Cancel(cmd.Context(), db.pool, args[0], args[1], actor(), strings.TrimSpace(reason)); err != nil {
					return err
				}
				return c.act(acted{args[0], args[1], 0, "cancel", 0, nil}, "%s %s is cancelled", clean(args[0]), clean(args[1]))
			})
		},
	}
	reasonFlag(cmd, &reason)
	return cmd
}
