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

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgdev"
	"pawl/migrations"
)

func main() {
	if os.Getenv(workerEnv) != "" {
		check(work())
		return
	}
	var exit, asJSON, verbose bool
	r := &round{in: input{first: firstMonth(6)}, pace: 20 * time.Millisecond, log: io.Discard}
	flag.BoolVar(&exit, "exit", false, "end when all is published; else keep database and files until ^C")
	flag.BoolVar(&asJSON, "json", false, "print the result as one JSON value")
	flag.BoolVar(&verbose, "v", false, "show what the workers say")
	flag.IntVar(&r.in.tenants, "tenants", 50, "how many tenants, 1 to 99")
	flag.IntVar(&r.in.invoices, "invoices", 200, "of each tenant and month")
	flag.StringVar(&r.dir, "dir", "", "an empty directory for the files (default a temporary one)")
	flag.Uint64Var(&r.seed, "seed", uint64(time.Now().UnixNano()), "of the storm") //nolint:gosec // any will do
	flag.StringVar(&r.variant, "broken", "", "publish in a way that is wrong, rename or unguarded, and see it found out")
	flag.Parse()
	if err := usable(r); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(2)
	}
	r.in.months = 6
	if verbose {
		r.log = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	out, err := alone(ctx, r, func(out result) {
		check(tell(out, asJSON))
		if !exit {
			fmt.Fprintf(os.Stderr, "files: %s\ndatabase: %s\n^C ends it\n", r.dir, r.url)
			<-ctx.Done()
		}
	})
	stop()
	check(err)
	if !out.OK {
		os.Exit(1)
	}
}

func usable(r *round) error {
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("%q is no flag: see -h", flag.Arg(0))
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
func alone(ctx context.Context, r *round, told func(result)) (out result, err error) {
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
	told(out)
	return out, nil
}

// firstMonth is so many months back.
func firstMonth(n int) time.Time {
	now := time.Now().UTC()
	return time.Date(now.Year(), now.Month()-time.Month(n), 1, 0, 0, 0, 0, time.UTC)
}

func tell(out result, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(out)
	}
	verdict := "every read was right"
	if !out.OK {
		verdict = fmt.Sprintf("WRONG: %q", out.Wrong)
	}
	_, err := fmt.Printf("%d tenants, %d months, %d invoices: %d statements in %.1f s\n%d kills, %d pauses, %d takeovers, %d refusals, %d leftovers swept\n%d reads: %s\n",
		out.Tenants, out.Months, out.Invoices, out.Statements, out.Seconds, out.Kills, out.Pauses, out.Takeovers, out.Refusals, out.Swept, out.Reads, verdict)
	return err
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}
