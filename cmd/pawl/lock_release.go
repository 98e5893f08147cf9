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
)

const minReason = 10 // characters

func (c *cli) lockRelease() *cobra.Command {
	var seq seqValue
	f := lockrepo.Force{Actor: actor()}
	cmd := &cobra.Command{
		Use: "release NAME --token N --reason TEXT", Short: "Take a lease from its holder, by force", Args: exactly("NAME"),
		Long: `Take a lease from its holder, by force. From then on none of its guarded writes and no renewal passes.

The token says which lease is meant: it is refused when another has it by now. Transactions that the
holder has open may still commit, and nobody is granted the lock before they have ended; --kill
terminates them. Who did it, and why, goes into the audit.`,
		Example: `  pawl lock show job:settlement
  pawl lock release job:settlement --token 1795969942·676573 --reason "worker hangs, restarted by hand"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if seq == 0 {
				return usage("--token is missing: give the token of the lease that you mean; see: pawl lock show %s", args[0])
			}
			if err := checkReason(f.Reason); err != nil {
				return err
			}
			return c.withLocks(cmd.Context(), func(repo *lockrepo.Repo) error {
				t, err := repo.Force(cmd.Context(), args[0], int64(seq), f)
				if errors.Is(err, lockrepo.ErrNotHeld) {
					return conflict("%s is no lease, or none any more; see: pawl lock show %s", fence.Token{Lock: args[0], Seq: int64(seq)}, args[0])
				}
				if err != nil {
					return err
				}
				return c.sayReleased(t, f.Kill)
			})
		},
	}
	cmd.Flags().Var(&seq, "token", "the token of the lease that is meant")
	reasonFlag(cmd, &f.Reason)
	cmd.Flags().BoolVar(&f.Kill, "kill", false, "also terminate the holder's open transactions")
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

func (c *cli) sayReleased(t lockrepo.Tenure, kill bool) error {
	if c.p.json {
		return c.p.value(t)
	}
	c.p.line("released %s from %s, held for %s", fence.Token{Lock: clean(t.Lock), Seq: t.Token}, clean(or(t.Holder)), since(t.AcquiredAt, &t.EndedAt))
	if kill {
		c.p.line("terminated %s", plural(t.Killed, "open transaction", "open transactions"))
	}
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
