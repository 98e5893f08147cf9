package main

import (
	"github.com/spf13/cobra"

	"pawl/lockrepo"
)

func (c *cli) lockShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show one lock", Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withLocks(cmd.Context(), func(repo *lockrepo.Repo) error {
				l, err := repo.Show(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if c.p.json {
					return c.p.value(l)
				}
				c.p.fields(lockFields(l))
				return nil
			})
		},
	}
}

func lockFields(l lockrepo.Info) [][2]string {
	cells := lockCells(l)
	return [][2]string{
		{"lock", l.Lock},
		{"state", l.State},
		{"holder", cells[2]},
		{"token", cells[3]},
		{"key", or(l.Key)},
		{"job", or(l.Job)},
		{"period", or(l.Period)},
		{"acquired", at(l.AcquiredAt)},
		{"renewed", at(l.RenewedAt)},
		{"expires", at(l.ExpiresAt)},
		{"time left", cells[6]},
		{"ttl", humanise(l.TTL.Duration())},
		{"beats", thousands(int64(l.Beats))},
		{"longest gap", humanise(l.LongestGap.Duration())},
	}
}
