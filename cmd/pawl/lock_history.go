package main

import (
	"github.com/spf13/cobra"

	"pawl/lockrepo"
)

func (c *cli) lockHistory() *cobra.Command {
	var limit int
	var before seqValue
	cmd := &cobra.Command{
		Use: "history NAME", Short: "List the ended leases of a lock, the newest first", Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withLocks(cmd.Context(), func(repo *lockrepo.Repo) error {
				ctx := cmd.Context()
				tenures, err := repo.History(ctx, args[0], limit, int64(before))
				if err != nil {
					return err
				}
				if len(tenures) == 0 {
					if _, err := repo.Show(ctx, args[0]); err != nil {
						return err
					}
				}
				heads := []string{"TOKEN", "HOLDER", "ACQUIRED", "ENDED", "HELD FOR", "HOW", "SUCCESSOR", "BEATS", "REFUSED WRITES", "KEY", "REQUEST"}
				return list(c.p, tenures, "no lease of this lock has ended", heads, tenureCells)
			})
		},
	}
	limitFlag(cmd, &limit)
	cmd.Flags().Var(&before, "before", "only tokens below this one: the last of the page before")
	return cmd
}

func tenureCells(t lockrepo.Tenure) []string {
	held := "-"
	if t.AcquiredAt != nil {
		held = humanise(t.EndedAt.Sub(*t.AcquiredAt))
	}
	successor := int64(0)
	if t.Successor != nil {
		successor = *t.Successor
	}
	return []string{
		token(t.Token), or(t.Holder), at(t.AcquiredAt), at(&t.EndedAt), held, t.How, token(successor),
		thousands(int64(t.Beats)), thousands(t.Refusals), or(t.KeyName), or(t.RequestID),
	}
}
