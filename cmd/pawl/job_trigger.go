package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

// mostListed is how many periods can be asked for.
const mostListed = 1000

func (c *cli) jobTrigger() *cobra.Command {
	return &cobra.Command{
		Use: "trigger JOB", Short: "Make a job's current period owed now, whatever its schedule says", Args: exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHistory(cmd.Context(), func(db *database, h *jobs.History) error {
				key, err := jobs.Trigger(cmd.Context(), db.pool, args[0], actor())
				switch {
				case errors.Is(err, jobs.ErrComplete):
					return conflict("%s %s is complete, so it doesn't run again by itself; if it has to: pawl job rerun %s %s --reason TEXT", args[0], key, args[0], key)
				case err != nil:
					return err
				}
				if !c.p.json {
					c.p.line("%s %s is owed now", clean(args[0]), clean(key))
					return nil
				}
				periods, err := h.Periods(cmd.Context(), jobs.PeriodFilter{Job: args[0], Limit: mostListed})
				if err != nil {
					return err
				}
				for _, p := range periods {
					if p.Key == key {
						return c.p.value(p)
					}
				}
				return fmt.Errorf("%s %s is owed now, but is not among the last %d periods", args[0], key, mostListed)
			})
		},
	}
}
