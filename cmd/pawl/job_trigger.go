package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

func (c *cli) jobTrigger() *cobra.Command {
	return &cobra.Command{
		Use: "trigger JOB", Short: "Make a job's current period owed now, whatever its schedule says", Args: exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHistory(cmd.Context(), func(db *database, h *jobs.History) error {
				key, err := jobs.Trigger(cmd.Context(), db.pool, args[0], actor())
				if err != nil {
					return err
				}
				if !c.p.json {
					c.p.line("%s %s is owed now", clean(args[0]), clean(key))
					return nil
				}
				periods, err := h.Periods(cmd.Context(), jobs.PeriodFilter{Job: args[0], Limit: mostCounted})
				if err != nil {
					return err
				}
				for _, p := range periods {
					if p.Key == key {
						return c.p.value(p)
					}
				}
				return fmt.Errorf("%s %s is owed now, but is not among the last %d periods", args[0], key, mostCounted)
			})
		},
	}
}
