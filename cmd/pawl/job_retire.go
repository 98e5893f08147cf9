package main

import (
	"strings"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

// retired is what came of retiring a job.
type retired struct {
	Job       string `json:"job"`
	Cancelled int64  `json:"cancelled"` // periods
}

func (c *cli) jobRetire() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "retire JOB --reason TEXT", Short: "End a job for good: plan no more of it, cancel what it owes", Args: exactly("JOB"),
		Long: `End a job for good. It is planned no more, and the periods that wait are cancelled. A run that is under
way may finish, and the history stays. Who did it, and why, goes into the audit.

Take the job out of the workers first: one that has it registers it again when it starts.`,
		Example: `  pawl job retire report --reason "replaced by the ledger's own"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReason(reason); err != nil {
				return err
			}
			return c.withHistory(cmd.Context(), func(db *database, _ *jobs.History) error {
				n, err := jobs.Retire(cmd.Context(), db.pool, args[0], actor(), strings.TrimSpace(reason))
				if err != nil {
					return err
				}
				if c.p.json {
					return c.p.value(retired{args[0], n})
				}
				c.p.line("%s is retired; %s cancelled", clean(args[0]), plural(n, "open period was", "open periods were"))
				return nil
			})
		},
	}
	reasonFlag(cmd, &reason)
	return cmd
}
