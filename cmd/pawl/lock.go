package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"pawl/fence"
	"pawl/lockrepo"
)

func (c *cli) lock() *cobra.Command {
	cmd := &cobra.Command{
		Use: "lock", Short: "Show who holds what, or release a lock by force", Args: noCommand, RunE: help,
	}
	cmd.AddCommand(c.lockList(), c.lockShow(), c.lockHistory(), c.lockRelease())
	return cmd
}

// withLocks runs fn on the locks of the database.
func (c *cli) withLocks(ctx context.Context, fn func(*lockrepo.Repo) error) error {
	db, err := c.openMigrated(ctx, 2)
	if err != nil {
		return err
	}
	defer db.pool.Close()
	repo, err := lockrepo.New(lockrepo.Config{Pool: db.pool}) //nolint:contextcheck // heartbeats end with Close
	if err != nil {
		return err
	}
	defer repo.Close()
	return fn(repo)
}

// token is a token's number for people; 0 is none.
func token(seq int64) string {
	if seq == 0 {
		return "-"
	}
	return fence.FormatSeq(seq)
}

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

func (c *cli) lockHistory() *cobra.Command {
	var limit int
	var before seqValue
	cmd := &cobra.Command{
		Use: "history NAME", Short: "List the ended leases of a lock, the newest first", Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLimit(limit); err != nil {
				return err
			}
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
				heads := []string{"TOKEN", "HOLDER", "ACQUIRED", "ENDED", "HELD FOR", "HOW", "SUCCESSOR", "BEATS", "REFUSED WRITES"}
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
		thousands(int64(t.Beats)), thousands(t.Refusals),
	}
}

// since is the time between two moments that are both known.
func since(from, to *time.Time) string {
	if from == nil || to == nil {
		return "-"
	}
	return humanise(to.Sub(*from))
}
