package main

import (
	"cmp"
	"errors"
	"os"
	"os/user"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"pawl/fence"
	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
)

const minReason = 10 // characters

func (c *cli) lockRelease() *cobra.Command {
	var seq seqValue
	var keyFile string
	r := approvals.Release{}
	cmd := &cobra.Command{
		Use: "release NAME --token N --reason TEXT", Short: "Ask for a lease to be taken from its holder, by force", Args: exactly("NAME"),
		Long: `Ask for a lease to be taken from its holder, by force. A second person approves: pawl approval approve.
From then on none of the holder's guarded writes and no renewal passes. Where a team of one has set it,
the lease is taken at once: pawl approval single-operator.

The token says which lease is meant: nothing happens when another has it by now. Transactions that the
holder has open may still commit, and nobody is granted the lock before they have ended; --kill
terminates them. Who asked, who approved, and why, goes into the audit.`,
		Example: `  pawl lock show job:settlement
  pawl lock release job:settlement --token 1795969942·676573 --reason "worker hangs, restarted by hand"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if seq == 0 {
				return usage("--token is missing: give the token of the lease that you mean; see: pawl lock show %s", args[0])
			}
			if err := checkReason(r.Reason); err != nil {
				return err
			}
			r.Lock, r.Token = args[0], int64(seq)
			return c.withApprovals(cmd.Context(), keyFile, func(store *approvals.Store, by approvals.Person) error {
				r.By = by
				q, err := store.RequestRelease(cmd.Context(), r)
				if errors.Is(err, lockrepo.ErrNotHeld) {
					return conflict("%s is no lease, or none any more; see: pawl lock show %s", fence.Token{Lock: args[0], Seq: int64(seq)}, args[0])
				}
				if err != nil {
					return err
				}
				return c.sayAsked(q)
			})
		},
	}
	cmd.Flags().Var(&seq, "token", "the token of the lease that is meant")
	reasonFlag(cmd, &r.Reason)
	cmd.Flags().BoolVar(&r.Kill, "kill", false, "also terminate the holder's open transactions")
	cmd.Flags().DurationVar(&r.Valid, "valid", 0, "how long it may be approved, 1m to 1h (default 15m)")
	personFlag(cmd, &keyFile)
	return cmd
}

func reasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why, in at least 10 characters")
}

func checkReason(reason string) error {
	n := utf8.RuneCountInString(strings.TrimSpace(reason))
	switch {
	case n == 0:
		return usage("--reason is missing: write at least %d characters, for those who read the audit", minReason)
	case n < minReason:
		return usage("--reason has %s: write at least %d, for those who read the audit", plural(int64(n), "character", "characters"), minReason)
	}
	return nil
}

func (c *cli) sayAsked(q approvals.Request) error {
	if c.p.json {
		return c.p.value(q)
	}
	tok := fence.Token{Lock: clean(q.Lock), Seq: q.Token}
	if q.State == approvals.Approved {
		c.p.line("released %s; single operator: %s approved this alone, and the audit says so", tok, clean(q.DecidedBy))
		return nil
	}
	c.p.line("request %d asks for %s, held by %s; nothing is released yet", q.ID, tok, clean(or(q.Holder)))
	c.p.line("until %s another person may say: pawl approval approve %d", at(&q.ExpiresAt), q.ID)
	return nil
}

// actor is who sits at this machine, for the audit.
func actor() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname() // Then it is empty.
	return "cli:" + name + "@" + cmp.Or(host, "unknown")
}

// seqValue is a flag that takes a token as it is printed, or only its digits.
type seqValue int64

func (v *seqValue) String() string {
	if *v == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*v), 10)
}

// Set reads the number behind the last #, with or without marks between its digits.
func (v *seqValue) Set(s string) error {
	digits := strings.NewReplacer("·", "", "_", "", ",", "", " ", "").Replace(s[strings.LastIndex(s, "#")+1:])
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 {
		return errors.New("write the token as it is printed, such as 1795969942·676573, or only its digits")
	}
	*v = seqValue(n)
	return nil
}

func (v *seqValue) Type() string { return "token" }
