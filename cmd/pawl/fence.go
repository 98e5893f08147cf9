package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"pawl/fence"
	"pawl/lockrepo"
)

// fenceFlags name a write: by which lease, to what.
type fenceFlags struct {
	lock    string
	seq     seqValue
	targets []string
}

func (c *cli) fence() *cobra.Command {
	cmd := &cobra.Command{
		Use: "fence", Short: "Ask or raise what a target has seen of a lock's tokens, for scripts", Args: noCommand, RunE: help,
	}
	cmd.AddCommand(c.fenceCheck(), c.fenceClaim())
	return cmd
}

func (c *cli) fenceCheck() *cobra.Command {
	var f fenceFlags
	cmd := &cobra.Command{
		Use: "check --lock NAME --token N --target NAME", Short: "Ask whether a target would still take a token", Args: exactly(),
		Long: `Ask whether a target would still take a token. Exit code 0: it would; 3: it has seen a newer one, or belongs
to another lock.

It is advice only, since the answer is old when it arrives: a store that can compare numbers must compare by
itself, and a table in this database is written after pawl.fence, in the same transaction.`,
		Example: `  pawl fence check --lock job:settlement --token 1795969942·676573 --target account:42
  pawl run --lock nightly -- sh -c 'pawl fence check --target bucket:reports && upload'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(1); err != nil {
				return err
			}
			return c.withLocks(cmd.Context(), func(repo *lockrepo.Repo) error {
				current, last, err := repo.CheckTarget(cmd.Context(), f.token(), f.targets[0])
				if err != nil {
					return err
				}
				return c.sayChecked(f.token(), f.targets[0], current, last)
			})
		},
	}
	f.flags(cmd, "the name of what is written")
	return cmd
}

func (c *cli) fenceClaim() *cobra.Command {
	var f fenceFlags
	cmd := &cobra.Command{
		Use: "claim --lock NAME --token N --target NAME…", Short: "Raise targets to a token, before the first read", Args: exactly(),
		Long: `Raise targets to a token, under the lease that it belongs to. From then on an older holder can't write them:
its pawl.fence, pawl fence check and POST /fences/TARGET/check are refused. Claim before the first read.

Exit code 3: the lease has ended, a target has seen a newer token, or belongs to another lock. Then no
target was raised. Claiming again with the same token is no error.`,
		Example: `  pawl fence claim --lock job:settlement --token 1795969942·676573 --target account:42 --target account:43
  pawl run --lock nightly -- sh -c 'pawl fence claim --target bucket:reports && upload'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(len(f.targets)); err != nil {
				return err
			}
			db, err := c.openMigrated(cmd.Context(), 2)
			if err != nil {
				return err
			}
			defer db.pool.Close()
			if err := fence.Claim(cmd.Context(), db.pool, f.token(), f.targets...); err != nil {
				return refusedClaim(err)
			}
			if c.p.json {
				return c.p.value(claimed{f.lock, int64(f.seq), f.targets})
			}
			for _, t := range f.targets {
				c.p.line("%s: nothing below %s is taken any more", clean(t), fence.Token{Lock: clean(f.lock), Seq: int64(f.seq)})
			}
			return nil
		},
	}
	f.flags(cmd, "the name of what will be written; may be said again")
	return cmd
}

func (f *fenceFlags) flags(cmd *cobra.Command, target string) {
	fs := cmd.Flags()
	fs.StringVar(&f.lock, "lock", "", "the lock that the token belongs to")
	fs.Var(&f.seq, "token", "the token of the lease that writes")
	fs.StringArrayVar(&f.targets, "target", nil, target)
	variable(fs, "lock", "PAWL_LOCK") // pawl run sets both
	variable(fs, "token", "PAWL_TOKEN")
}

// check demands all three, and at most so many targets.
func (f *fenceFlags) check(most int) error {
	switch {
	case f.lock == "":
		return usage("--lock is missing: give the name of the lock, or run under pawl run, which sets PAWL_LOCK")
	case f.seq == 0:
		return usage("--token is missing: give the token that you were granted, or run under pawl run, which sets PAWL_TOKEN")
	case len(f.targets) == 0:
		return usage("--target is missing: give the name of what is written, such as account:42")
	case len(f.targets) > most:
		return usage("--target is given %d times: check one at a time", len(f.targets))
	case slices.ContainsFunc(f.targets, blank):
		return usage(`--target is %q: give the name of what is written, such as account:42`, f.targets[slices.IndexFunc(f.targets, blank)])
	case !f.token().Valid():
		return usage("--lock is %q: a lock's name has 1 to 255 bytes of UTF-8 without NUL", f.lock)
	}
	return nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func (f *fenceFlags) token() fence.Token { return fence.Token{Lock: f.lock, Seq: int64(f.seq)} }

// checked is the answer as JSON; a refusal has none, as no error has.
type checked struct {
	Lock      string `json:"lock"`
	Token     int64  `json:"token"`
	Target    string `json:"target"`
	Current   bool   `json:"current"`
	LastToken *int64 `json:"last_token"` // null: never written
}

// claimed is what is raised, as JSON.
type claimed struct {
	Lock    string   `json:"lock"`
	Token   int64    `json:"token"`
	Targets []string `json:"targets"`
}

func (c *cli) sayChecked(tok fence.Token, target string, current bool, last *int64) error {
	seen := "no token yet"
	if last != nil {
		seen = "token " + token(*last)
	}
	switch {
	case !current && last != nil && *last <= tok.Seq:
		return conflict("target %q belongs to another lock than %q, and tokens of different locks don't compare: use the lock that it is written under",
			target, tok.Lock)
	case !current:
		return conflict("target %q has seen %s, which is newer than %s: stop writing, acquire the lock again and read again, unless it is another lock's target", target, seen, tok)
	case c.p.json:
		return c.p.value(checked{tok.Lock, tok.Seq, target, current, last})
	}
	c.p.line("%s: %s is current; it has seen %s", clean(target), clean(tok.String()), seen)
	return nil
}

// refusedClaim says what to do about a target of another lock; what to do about a stale token its error says itself.
func refusedClaim(err error) error {
	var pg *pgconn.PgError
	if errors.Is(err, fence.ErrOtherLock) && errors.As(err, &pg) {
		return conflict("%s; tokens of different locks don't compare: use the lock that it is written under", strings.TrimPrefix(pg.Message, "pawl: "))
	}
	return err
}
