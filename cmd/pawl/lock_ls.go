package main

import (
	"github.com/spf13/cobra"

	"pawl/lockrepo"
)

func (c *cli) lockList() *cobra.Command {
	var f lockrepo.Filter
	cmd := &cobra.Command{
		Use: "ls", Short: "List locks, who holds them and for how long", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLockFilter(f); err != nil {
				return err
			}
			return c.withLocks(cmd.Context(), func(repo *lockrepo.Repo) error {
				locks, err := repo.List(cmd.Context(), f)
				if err != nil {
					return err
				}
				return list(c.p, locks, "no locks", []string{"LOCK", "STATE", "HOLDER", "TOKEN", "HELD FOR", "LAST BEAT", "TIME LEFT"}, lockCells)
			})
		},
	}
	cmd.Flags().StringVar(&f.Prefix, "prefix", "", "only locks whose name begins so")
	cmd.Flags().StringVar(&f.State, "state", "", "only held, stale or free ones")
	cmd.Flags().StringVar(&f.After, "after", "", "only names after this one: the last of the page before")
	limitFlag(cmd, &f.Limit)
	return cmd
}

func checkLockFilter(f lockrepo.Filter) error {
	switch f.State {
	case "", lockrepo.Held, lockrepo.Stale, lockrepo.Free:
		return checkLimit(f.Limit)
	}
	return usage("--state is %q: use held, stale or free", f.State)
}

func lockCells(l lockrepo.Info) []string {
	if l.State == lockrepo.Free {
		return []string{l.Lock, l.State, "-", token(l.Token), "-", "-", "-"}
	}
	left := "-"
	if l.ExpiresAt != nil {
		left = humanise(l.ExpiresAt.Sub(l.ReadAt))
	}
	return []string{l.Lock, l.State, or(l.Holder), token(l.Token), ago(l.ReadAt, l.AcquiredAt), ago(l.ReadAt, l.RenewedAt), left}
}
