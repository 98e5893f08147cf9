package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
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

Exit codes: 0 ok, an empty list too; 1 failed; 2 wrong use or input, an unknown name too; 3 not held,
refused or conflict; 4 database or server unreachable.

With --json standard output has one JSON value, and on an error nothing: the error is a sentence on
standard error. What doctor, demo, lint and diff have found is printed all the same when it is bad.`

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use: "pawl", Short: "A fencing-aware job runner on Postgres", Long: longHelp,
		Args: noCommand, RunE: help,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return c.prepare(cmd) },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(helpCommand(root))
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if wrong := (*pflag.InvalidValueError)(nil); errors.As(err, &wrong) {
			return usage("--%s is %q: %s; see: %s --help", wrong.GetFlag().Name, wrong.GetValue(), plain(wrong.Unwrap()), cmd.CommandPath())
		}
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
	root.AddCommand(c.demo(), c.demoWorker(), c.serve(), c.run(), c.guardian(), c.migrate(), c.lock(), c.fence(), c.key(), c.approval(), c.job(), c.artifact(), c.protect(), c.adopt(), c.doctor(), c.version(),
		c.plan(), c.lint(), c.schema(), c.initFile(), c.backfill(), c.why(), c.diff())
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
	if err == nil {
		_, err = c.logger() // a wrong word is refused by the commands that log nothing too
	}
	return err
}

var parsing = regexp.MustCompile(`strconv\.\w+: parsing "[^"]*": `)

// plain leaves out which function of Go's has stumbled.
func plain(err error) string {
	switch s := err.Error(); {
	case strings.HasPrefix(s, "time: "):
		return "use a duration such as 30s or 5m"
	case strings.HasPrefix(s, "strconv.ParseBool: "):
		return "use true or false"
	}
	return parsing.ReplaceAllString(err.Error(), "")
}

// help is what a command that is only a group does.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// helpCommand is cobra's, but for words that name no command.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil {
				return usage("%s; see: pawl --help", err)
			}
			if cmd.HasSubCommands() {
				if err := noCommand(cmd, rest); err != nil {
					return err
				}
			}
			return cmd.Help()
		},
	}
}

// noCommand refuses arguments of a group: they are commands that don't exist.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 1 // letters that may differ
	if len(args[0]) > 4 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usage("there is no command %q; did you mean: %s %s", cmd.CommandPath()+" "+args[0], cmd.CommandPath(), strings.Join(near, " or "))
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

// atMost allows n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usage("%q is one argument too many; see: %s --help", args[n], cmd.CommandPath())
		}
		return nil
	}
}

// limitFlag bounds a list.
func limitFlag(cmd *cobra.Command, limit *int) {
	*limit = 100
	cmd.Flags().Var(&between{limit, 1, 1000}, "limit", "how many rows at most, 1 to 1000")
}

// between is a flag that takes a whole number from least to most.
type between struct {
	n           *int
	least, most int
}

func (v *between) String() string {
	if v.n == nil {
		return "0"
	}
	return strconv.Itoa(*v.n)
}

// Set says what may be given, whatever is wrong.
func (v *between) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < v.least || n > v.most {
		return fmt.Errorf("use %d to %d", v.least, v.most)
	}
	*v.n = n
	return nil
}

func (v *between) Type() string { return "int" }

// plural is the count with its noun.
func plural[N int | int64](n N, one, more string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", one)
	}
	return thousands(int64(n)) + " " + more
}
