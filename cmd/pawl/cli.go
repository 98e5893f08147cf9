package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// cli is what all commands share.
type cli struct {
	getenv func(string) string
	stdin  io.Reader
	p      *printer

	databaseURL, logFormat, logLevel string
}

const longHelp = `Pawl runs scheduled jobs on Postgres. Each period that a schedule owes is settled once, whatever
dies: results, the note that a period is complete, and the release of its lock commit together, and
a worker that wakes up too late is refused.

Begin with:

  pawl demo

Exit codes: 0 ok; 1 failed; 2 wrong use or input; 3 not held, refused, conflict or empty;
4 database or server unreachable.`

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use: "pawl", Short: "A fencing-aware job runner on Postgres", Long: longHelp,
		Args: noCommand, RunE: help,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return c.prepare(cmd) },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%s; see: %s --help", plain(err), cmd.CommandPath())
	})
	f := root.PersistentFlags()
	f.StringVar(&c.databaseURL, "database-url", "", "the database, as in postgres://user@host:5432/name")
	f.BoolVar(&c.p.json, "json", false, "print one JSON value on standard output")
	f.StringVar(&c.logFormat, "log-format", "", "text or json (default text on a terminal, else json)")
	f.StringVar(&c.logLevel, "log-level", "info", "debug, info, warn or error")
	variable(f, "database-url", "DATABASE_URL")
	variable(f, "log-format", "PAWL_LOG_FORMAT")
	variable(f, "log-level", "PAWL_LOG_LEVEL")
	root.AddCommand(c.demo(), c.demoWorker(), c.serve(), c.migrate(), c.lock(), c.job(), c.protect(), c.adopt(), c.doctor(), c.version())
	return root
}

// variableOf is the annotation of a flag that names its variable.
const variableOf = "variable"

// variable says which environment variable stands in for a flag that isn't given.
func variable(f *pflag.FlagSet, flag, name string) {
	x := f.Lookup(flag)
	x.Usage += " [" + name + "]"
	x.Annotations = map[string][]string{variableOf: {name}}
}

// prepare takes variables for flags that were not given. An empty variable is none.
func (c *cli) prepare(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names := f.Annotations[variableOf]
		if err != nil || f.Changed || len(names) == 0 || c.getenv(names[0]) == "" {
			return
		}
		if set := f.Value.Set(c.getenv(names[0])); set != nil {
			err = usage("variable %s is %q: %s", names[0], c.getenv(names[0]), plain(set))
		}
	})
	return err
}

var parsing = regexp.MustCompile(`strconv\.\w+: parsing "[^"]*": `)

// plain leaves out which function of Go's has stumbled.
func plain(err error) string { return parsing.ReplaceAllString(err.Error(), "") }

// help is what a command that is only a group does.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// noCommand refuses arguments of a group: they are commands that don't exist.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage("there is no command %q; see: %s --help", cmd.CommandPath()+" "+args[0], cmd.CommandPath())
}

// exactly demands one argument for each name.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > len(names):
			return usage("%q is one argument too many; see: %s --help", args[len(names)], cmd.CommandPath())
		case len(args) < len(names):
			return usage("%s is missing; write: %s", names[len(args)], cmd.UseLine())
		}
		for i, a := range args {
			if strings.TrimSpace(a) == "" {
				return usage("%s is empty; write: %s", names[i], cmd.UseLine())
			}
		}
		return nil
	}
}

// limitFlag bounds a list.
func limitFlag(cmd *cobra.Command, limit *int) {
	cmd.Flags().IntVar(limit, "limit", 100, "how many rows at most, 1 to 1000")
}

func checkLimit(limit int) error {
	if limit < 1 || limit > 1000 {
		return usage("--limit is %d: use 1 to 1000", limit)
	}
	return nil
}

// plural is the count with its noun.
func plural[N int | int64](n N, one, more string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", one)
	}
	return thousands(int64(n)) + " " + more
}
