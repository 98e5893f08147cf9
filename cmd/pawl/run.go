package main

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pawl/internal/guardian"
)

// The exit codes of pawl run, unless flags say otherwise.
const (
	codeHeld = 75 // EX_TEMPFAIL of sysexits.h
	codeLost = 76
)

const (
	minRunTTL, maxRunTTL = 100 * time.Millisecond, 24 * time.Hour
	mostGrace            = 10 * time.Second // by default
)

// runFlags are those of pawl run, and the command.
type runFlags struct {
	lock, once       string
	server, keyFile  string
	ttl, wait, grace time.Duration
	held, lost       int
	args             []string
}

func (c *cli) run() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run --lock NAME [flags] -- COMMAND [ARG…]",
		Short: "Run any program under a lock",
		Long: `Run any program under a lock: it runs while the lease is held, and no process of it is left when the
lease ends. What it has left running is ended with it.

It asks for the lock once, or for as long as --wait says. The command gets PAWL_LOCK, PAWL_TOKEN,
PAWL_HOLDER and PAWL_TTL, and standard input, output and error as they are. Signals are passed on to it.
If the lease can't be renewed it gets TERM, and KILL when the grace is over, before the lease ends.

On Linux that holds whatever is killed or stopped, pawl included; elsewhere only for the command's process
group. A machine that freezes as a whole, and wakes, is what fencing is for: pass PAWL_TOKEN on to whatever
the command writes. See: docs/run.md

Exit codes: the command's own, 128+n after signal n; 126 or 127 where there is no such command to run.
Before the command: 75 lock not had, 2 wrong use, 4 database or server unreachable. 76 lease lost.`,
		Example: `  pawl run --lock nightly-report -- ./report.sh --yesterday
  pawl run --lock backup --ttl 2m --wait 10m -- pg_dump -f /backup/shop.sql shop
  pawl run --lock billing --once-per 2026-09 -- ./bill.sh 2026-09`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.args = args
			if err := f.check(cmd.Flags(), c.p.json); err != nil {
				return err
			}
			return c.runUnderLock(cmd.Context(), f)
		},
	}
	cmd.Flags().SetInterspersed(false) // the command's flags are its own
	f.declare(cmd.Flags())
	return cmd
}

func (f *runFlags) declare(fs *pflag.FlagSet) {
	f.held, f.lost = codeHeld, codeLost
	fs.StringVar(&f.lock, "lock", "", "the lock's name")
	fs.DurationVar(&f.ttl, "ttl", 30*time.Second, "how long the lease lasts unless it is renewed")
	fs.DurationVar(&f.wait, "wait", 0, "how long to wait for the lock at most; 0: ask once")
	fs.DurationVar(&f.grace, "grace", 0, "between TERM and KILL, at most a third of --ttl (default the smaller of 10s and that)")
	fs.Var(&between{&f.held, 0, 255}, "exit-held", "exit code when the lock is not had")
	fs.Var(&between{&f.lost, 0, 255}, "exit-lost", "exit code when the lease is lost")
	fs.StringVar(&f.once, "once-per", "", "run at most once to exit code 0 for this key and lock, for ever (database only)")
	fs.StringVar(&f.server, "server", "", "ask a pawl serve at this URL, not the database")
	fs.StringVar(&f.keyFile, "key-file", "", "the file with the key for --server")
	variable(fs, "server", "PAWL_SERVER")
	variable(fs, "key-file", "PAWL_KEY_FILE")
}

func (f *runFlags) check(fs *pflag.FlagSet, json bool) error {
	for _, name := range []string{"once-per", "server", "key-file"} {
		if x := fs.Lookup(name); x.Changed && strings.TrimSpace(x.Value.String()) == "" {
			return usage("--%s is empty: give a value, or leave it out", name)
		}
	}
	switch {
	case json:
		return usage("--json is of no use here: standard output is the command's")
	case strings.TrimSpace(f.lock) == "":
		return usage("--lock is missing: name the lock; write: pawl run --lock NAME -- COMMAND [ARG…]")
	case len(f.args) == 0 || f.args[0] == "":
		return usage("the command is missing; write: pawl run --lock NAME -- COMMAND [ARG…]")
	case f.server != "" && f.once != "":
		return usage("--once-per needs the database: leave out --server, and give --database-url")
	case f.server == "" && fs.Changed("key-file"):
		return usage("--key-file is for --server: give that too, or leave it out")
	case f.wait < 0:
		return usage("--wait is %s: use a duration such as 5m, or 0 to ask once", f.wait)
	}
	return f.checkTimes(fs.Changed("grace"))
}

func (f *runFlags) checkTimes(given bool) error {
	switch {
	case f.ttl < minRunTTL || f.ttl > maxRunTTL:
		return usage("--ttl is %s: use 100ms to 24h", f.ttl)
	case f.server != "" && f.ttl%time.Second != 0:
		return usage("--ttl is %s: with --server use whole seconds, 1s to 24h", f.ttl)
	case f.grace < 0:
		return usage("--grace is %s: use a duration such as 5s, or 0 for none", f.grace)
	case f.grace > f.ttl/3:
		return usage("--grace is %s: use at most %s, a third of --ttl, or a longer --ttl", f.grace, f.ttl/3)
	case !given:
		f.grace = min(mostGrace, f.ttl/3)
	}
	return nil
}

// guardian is the second of the three processes.
func (c *cli) guardian() *cobra.Command {
	return &cobra.Command{
		Use: "guardian", Short: "Ends the command of pawl run in time", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return said(guardian.Main(args, c.p.err)) },
	}
}

// find refuses a command that can't be run, before anybody is asked for a lock.
func (c *cli) find(name string) error {
	_, code, err := guardian.Find(name)
	if code == 0 {
		return nil
	}
	return &coded{code, cmp.Or(err, errSaid)}
}
