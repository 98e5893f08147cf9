package main

import (
	"errors"

	"github.com/spf13/cobra"

	"pawl/fence"
	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
)

func (c *cli) approvalApprove() *cobra.Command {
	var note, keyFile string
	cmd := &cobra.Command{
		Use: "approve ID", Short: "Approve a request: the lease is released at once", Args: exactly("ID"),
		Long: `Approve a request of another person: its lease is released at once, in the transaction that notes it. If the
lease has ended meanwhile, whoever has the lock now keeps it, and the exit code is 3.`,
		Example: `  pawl approval show 7
  pawl approval approve 7 --note "seen on its console, it does hang"`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.decide(cmd, args[0], keyFile, true, note) },
	}
	cmd.Flags().StringVar(&note, "note", "", "what you have looked at, for the audit")
	personFlag(cmd, &keyFile)
	return cmd
}

func (c *cli) approvalDecline() *cobra.Command {
	var note, keyFile string
	cmd := &cobra.Command{
		Use: "decline ID --note TEXT", Short: "Decline a request, or take your own back", Args: exactly("ID"),
		Example: `  pawl approval decline 7 --note "it works: its batch takes an hour"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if blank(note) {
				return usage("--note is missing: say why, for who has asked")
			}
			return c.decide(cmd, args[0], keyFile, false, note)
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "why")
	personFlag(cmd, &keyFile)
	return cmd
}

// decision is a decided request as JSON, with the lease that it has ended.
type decision struct {
	approvals.Request
	Tenure *lockrepo.Tenure `json:"tenure"` // null: declined
	Killed int64            `json:"killed"` // transactions that were terminated
}

func (c *cli) decide(cmd *cobra.Command, number, keyFile string, approve bool, note string) error {
	id, err := requestID(number)
	if err != nil {
		return err
	}
	return c.withApprovals(cmd.Context(), keyFile, func(store *approvals.Store, by approvals.Person) error {
		q, t, err := store.Decide(cmd.Context(), id, by, approve, note)
		switch {
		case errors.Is(err, lockrepo.ErrNotHeld):
			return conflict("%s has no lease any more, the lock is with %s now; nothing was released; see: pawl lock show %s",
				fence.Token{Lock: clean(q.Lock), Seq: q.Token}, clean(or(q.Holder)), clean(q.Lock))
		case err != nil:
			return err
		}
		return c.sayDecided(q, t)
	})
}

func (c *cli) sayDecided(q approvals.Request, t lockrepo.Tenure) error {
	released := t.How != ""
	if c.p.json {
		d := decision{Request: q, Killed: t.Killed}
		if released {
			d.Tenure = &t
		}
		return c.p.value(d)
	}
	if !released {
		c.p.line("request %d of %s is declined", q.ID, clean(q.RequestedBy))
		return nil
	}
	c.p.line("released %s from %s, held for %s", fence.Token{Lock: clean(t.Lock), Seq: t.Token}, clean(or(t.Holder)), since(t.AcquiredAt, &t.EndedAt))
	if q.Kill {
		c.p.line("terminated %s", plural(t.Killed, "open transaction", "open transactions"))
	}
	return nil
}
