package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"pawl/examples/internal/crew"
)

func main() {
	if name := os.Getenv(workerEnv); name != "" {
		if err := work(name); err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
			os.Exit(1)
		}
		return
	}
	example().Main()
}

func example() crew.Example {
	var o options
	return crew.Example{
		Name: "payout",
		Define: func(flags *flag.FlagSet) {
			flags.BoolVar(&o.broken, "broken", false, "make the token a part of the idempotency key, which pays twice")
			flags.IntVar(&o.rounds, "rounds", 2, "days to pay; in each, a worker is killed and another is stopped for a while")
			flags.IntVar(&o.merchants, "merchants", 60, "merchants to pay a day")
		},
		Check: func() error {
			if o.rounds < 1 || o.rounds > 1000 || o.merchants < 10 || o.merchants > 100_000 {
				return errors.New("use 1 to 1000 rounds and 10 to 100000 merchants")
			}
			return nil
		},
		Play: func(ctx context.Context, f crew.Flags) (crew.Report, error) {
			o.Flags = f
			return o.run(ctx)
		},
	}
}
