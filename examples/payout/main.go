package main

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

func main() {
	if name := os.Getenv(workerEnv); name != "" {
		if err := work(name); err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command runs the example with its arguments, and returns the exit code: 1 when the books don't agree.
func command(ctx context.Context, args []string, out, say io.Writer) int {
	var o options
	var exit, asJSON bool
	flags := flag.NewFlagSet("payout", flag.ContinueOnError)
	flags.SetOutput(say)
	flags.BoolVar(&exit, "exit", false, "end after the rounds; without it, look around in the database until ^C")
	flags.BoolVar(&asJSON, "json", false, "print the result as one JSON value")
	flags.BoolVar(&o.broken, "broken", false, "make the token a part of the idempotency key, which pays twice")
	flags.IntVar(&o.rounds, "rounds", 2, "days to pay; in each, a worker is killed and another is stopped for a while")
	flags.IntVar(&o.merchants, "merchants", 60, "merchants to pay a day")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()%1e6), "of amounts, lost replies and faults")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		_, _ = fmt.Fprintf(say, "payout: %q is no flag: see -h\n", flags.Arg(0))
		return 2
	}
	if o.rounds < 1 || o.rounds > 1000 || o.merchants < 10 || o.merchants > 100_000 {
		_, _ = fmt.Fprintln(say, "payout: use 1 to 1000 rounds and 10 to 100000 merchants")
		return 2
	}
	o.tell = func(format string, a ...any) { _, _ = fmt.Fprintf(say, format+"\n", a...) }
	o.after = func(url string) {
		if !exit {
			o.tell("The database is there until ^C: psql %q", url)
			<-ctx.Done()
		}
	}
	r, err := o.run(ctx)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			_, _ = fmt.Fprintln(say, "payout:", err)
		}
		return 1
	}
	if asJSON {
		_ = json.NewEncoder(out).Encode(r)
	} else {
		_, _ = fmt.Fprintln(out, r)
	}
	if !r.OK {
		return 1
	}
	return 0
}
