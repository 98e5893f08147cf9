package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/examples/internal/crew"
	"pawl/internal/pgdev"
	"pawl/migrations"
)

func main() {
	if os.Getenv(workerEnv) != "" {
		if err := work(); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	example().Main()
}

func example() crew.Example {
	r := &round{in: input{first: firstMonth(6), months: 6}, pace: 20 * time.Millisecond, log: io.Discard}
	verbose := false
	return crew.Example{
		Name: "report",
		Define: func(flags *flag.FlagSet) {
			flags.BoolVar(&verbose, "v", false, "show what the workers say")
			flags.IntVar(&r.in.tenants, "tenants", 50, "how many tenants, 1 to 99")
			flags.IntVar(&r.in.invoices, "invoices", 200, "of each tenant and month")
			flags.StringVar(&r.dir, "dir", "", "an empty directory for the files (default a temporary one)")
			flags.StringVar(&r.variant, "broken", "", "publish in a way that is wrong, rename or unguarded, and see it found out")
		},
		Check: r.usable,
		Play: func(ctx context.Context, f crew.Flags) (crew.Report, error) {
			if r.seed, r.say = f.Seed, f.Say; verbose {
				r.log = os.Stderr
			}
			return alone(ctx, r, f)
		},
	}
}

func (r *round) usable() error {
	switch {
	case r.in.tenants < 1 || r.in.tenants > 99:
		return fmt.Errorf("-tenants is %d: use 1 to 99", r.in.tenants)
	case r.in.invoices < 1 || r.in.invoices > 1_000_000:
		return fmt.Errorf("-invoices is %d: use 1 to 1000000", r.in.invoices)
	case r.variant != "" && r.variant != renameOnly && r.variant != unguarded:
		return fmt.Errorf("-broken is %q: use %s or %s", r.variant, renameOnly, unguarded)
	}
	return nil
}

// alone runs the round on a Postgres of its own.
func alone(ctx context.Context, r *round, f crew.Flags) (out result, err error) {
	server, err := pgdev.Start(ctx, pgdev.Options{})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	r.url = server.URL()
	if r.dir == "" {
		if r.dir, err = os.MkdirTemp("", "pawl-report-"); err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	}
	pool, err := pgxpool.New(ctx, r.url)
	if err != nil {
		return out, err
	}
	_, err = migrations.Up(ctx, pool)
	pool.Close()
	if err != nil {
		return out, err
	}
	if out, err = r.run(ctx); err != nil {
		return out, err
	}
	if !f.Exit {
		f.Say("The files are in %s", r.dir)
	}
	f.Tell(ctx, out, r.url)
	return out, nil
}

// firstMonth is so many months back.
func firstMonth(n int) time.Time {
	now := time.Now().UTC()
	return time.Date(now.Year(), now.Month()-time.Month(n), 1, 0, 0, 0, 0, time.UTC)
}

// Right tells whether every read was.
func (out result) Right() bool { return out.OK }

func (out result) String() string {
	verdict := "every read was right"
	if !out.OK {
		verdict = fmt.Sprintf("WRONG: %q", out.Wrong)
	}
	return fmt.Sprintf("%s\n  %d reads while %d statements of %d invoices were published for %d tenants and %d months, in %.1f s\n  %s; %d files of writers that had died were swept",
		verdict, out.Reads, out.Statements, out.Invoices, out.Tenants, out.Months, out.Seconds, out.Faults, out.Swept)
}
