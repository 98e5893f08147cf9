package crew

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Flags are those that every example has.
type Flags struct {
	Exit bool   // end when the play is over; else its database stays until ^C
	JSON bool   // the report is one JSON value
	Seed uint64 // of the faults
	out  io.Writer
	say  io.Writer
}

// Report is what a play has come to: for programs its JSON, for people its String.
type Report interface {
	fmt.Stringer
	Right() bool
}

// Example is the command line of an example.
type Example struct {
	Name   string
	Define func(*flag.FlagSet)                                // flags of its own; nil: none
	Check  func() error                                       // of those; nil: nothing can be wrong
	Play   func(ctx context.Context, f Flags) (Report, error) // calls f.Tell when it is over
}

// Say tells a person what happens.
func (f Flags) Say(format string, a ...any) { _, _ = fmt.Fprintf(f.say, format+"\n", a...) }

// Tell prints what a play has come to, and keeps what can be looked at until ^C, unless it is to end.
func (f Flags) Tell(ctx context.Context, r Report, database string) {
	if f.JSON {
		_ = json.NewEncoder(f.out).Encode(r)
	} else {
		_, _ = fmt.Fprintln(f.out, r)
	}
	if !f.Exit {
		f.Say("The database is there until ^C: psql %q", database)
		<-ctx.Done()
	}
}

// Main plays the example with the arguments of the process, and ends it.
func (e Example) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := e.Command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Command plays the example and returns the exit code: 1 if what came of it isn't right, or if it couldn't be played to its end, and
// 2 if the arguments can't be used.
func (e Example) Command(ctx context.Context, args []string, out, say io.Writer) int {
	f := Flags{out: out, say: say}
	flags := flag.NewFlagSet(e.Name, flag.ContinueOnError)
	flags.SetOutput(say)
	flags.BoolVar(&f.Exit, "exit", false, "end when the play is over; else its database stays for a look around, until ^C")
	flags.BoolVar(&f.JSON, "json", false, "print what came of it as one JSON value")
	flags.Uint64Var(&f.Seed, "seed", uint64(time.Now().UnixNano()%1e6), "of the faults: who is killed and paused, and when") //nolint:gosec // any will do
	if e.Define != nil {
		e.Define(flags)
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if err := e.check(flags); err != nil {
		f.Say("%s: %v", e.Name, err)
		return 2
	}
	r, err := e.Play(ctx, f)
	switch {
	case err != nil && ctx.Err() != nil:
		f.Say("%s: stopped before its end", e.Name)
		return 1
	case err != nil:
		f.Say("%s: %v", e.Name, err)
		return 1
	case !r.Right():
		return 1
	}
	return 0
}

func (e Example) check(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag: see -h", flags.Arg(0))
	}
	if e.Check == nil {
		return nil
	}
	return e.Check()
}
