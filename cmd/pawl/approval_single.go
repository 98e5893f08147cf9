package main

import (
	"github.com/spf13/cobra"

	"pawl/lockrepo/approvals"
)

func (c *cli) approvalSingle() *cobra.Command {
	var keyFile string
	cmd := &cobra.Command{
		Use: "single-operator on|off|status", Short: "Let people approve what they ask for, in a team of one", Args: exactly("on|off|status"),
		Long: `Let people approve what they have asked for themselves, or stop that, or say which it is. It is for a team of
one: what is asked for by who may approve is done at once, and marked so in the audit. Setting it is in the
audit too.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			set := args[0] != "status"
			if set && args[0] != "on" && args[0] != "off" {
				return usage("%q is none of on, off and status; write: %s", args[0], cmd.UseLine())
			}
			return c.withApprovals(cmd.Context(), keyFile, func(store *approvals.Store, by approvals.Person) error {
				if set {
					if err := store.SetSingleOperator(cmd.Context(), args[0] == "on", by); err != nil {
						return err
					}
				}
				on, err := store.SingleOperator(cmd.Context())
				if err != nil {
					return err
				}
				return c.saySingle(on)
			})
		},
	}
	personFlag(cmd, &keyFile)
	return cmd
}

func (c *cli) saySingle(on bool) error {
	if c.p.json {
		return c.p.value(struct {
			SingleOperator bool `json:"single_operator"`
		}{on})
	}
	if on {
		c.p.line("single operator is on: who asks may approve, alone, and the audit marks it")
		return nil
	}
	c.p.line("single operator is off: another person approves what one asks for")
	return nil
}
