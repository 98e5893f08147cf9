package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

// mostListed is how many periods can be asked for.
const mostListed = 1000

func (c *cli) jobTrigger() *cobra.Command {
	var given []string
	cmd := &cobra.Command{
		Use: "trigger JOB", Short: "Make a job's current period owed now, whatever its schedule says", Args: exactly("JOB"),
		Long: `Make a job's current period owed now, whatever its schedule says. The current period is the one that a tick at
this moment would owe; a @manual job gets a fresh one.

--param gives a value that the job declares under params; what isn't given is as it was given before for that period,
or else the default.`,
		Example: `  pawl job trigger settle --param mode=dry`,
		RunE: func(cmd *cobra.Command, args []string) error {
			params, err := readParams(given)
			if err != nil {
				return err
			}
			return c.withHistory(cmd.Context(), func(db *database, h *jobs.History) error {
				key, err := jobs.Trigger(cmd.Context(), db.pool, args[0], jobs.TriggerConfig{Actor: actor(), Params: params})
				if err != nil {
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
	paramFlag(cmd, &given)
	return cmd
}
