package crew

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Flags are those that every example has.
type Flags struct {
	Exit   bool   // is accepted for the sake of one command line for all; every play ends by itself
	JSON   bool   // the report is JSON alone
	Broken bool   // the variant without its fence, which the check finds
	Seed   uint64 // of the faults; 0 takes the clock
}

// Command parses the flags, plays, prints what came of it and ends the process: 1 if it isn't right.
func Command(play func(ctx context.Context, f Flags, log *slog.Logger) (report any, ok bool, err error)) {
	var f Flags
	flag.BoolVar(&f.Exit, "exit", false, "end when the play is over (it always does)")
	flag.BoolVar(&f.JSON, "json", false, "print the report as JSON, and nothing else")
	flag.BoolVar(&f.Broken, "broken", false, "play the variant without its fence, which the check must find")
	flag.Uint64Var(&f.Seed, "seed", 0, "seed of the faults; 0 takes the clock")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%q is no flag: see -h\n", flag.Arg(0))
		os.Exit(2)
	}
	if f.Seed == 0 {
		f.Seed = uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
	}
	log := slog.New(slog.DiscardHandler)
	if !f.JSON {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	report, ok, err := play(ctx, f, log)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	text, err := json.Marshal(report)
	if err != nil {
		panic(err) // numbers and strings
	}
	fmt.Println(string(text))
	if !ok {
		os.Exit(1)
	}
}
