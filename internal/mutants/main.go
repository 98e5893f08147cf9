// Command mutants breaks one rule of the protocol at a time, in a copy of the source tree, and runs the test that
// must notice. It promises: a patch is "caught" only if the test that it names is green without the patch and red with
// it. Exit code 1: a patch survived, doesn't apply, doesn't compile, or its test isn't green without it; 2: wrong use.
//
//	go run ./internal/mutants             every patch
//	go run ./internal/mutants -date       one, chosen by the date
//	go run ./internal/mutants NAME…       these, without .patch
//
// A patch begins with "test: PACKAGE TestName" and a sentence that says which rule it breaks; then comes the diff,
// without context, so that a change beside it doesn't matter.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	byDate := flag.Bool("date", false, "one patch only, chosen by today's date")
	flag.Parse()
	code := command(ctx, os.Stdout, *byDate, flag.Args())
	stop()
	os.Exit(code) //nolint:forbidigo // this is main
}

func command(ctx context.Context, out io.Writer, byDate bool, names []string) int {
	root, err := moduleRoot()
	if err != nil {
		say(out, "%v", err)
		return 2
	}
	ms, err := load(filepath.Join(root, "internal", "mutants"))
	if err == nil {
		ms, err = choose(ms, byDate, names, time.Now())
	}
	if err != nil {
		say(out, "%v", err)
		return 2
	}
	bad, err := try(ctx, out, root, ms)
	if err != nil {
		say(out, "%v", err)
		return 1
	}
	say(out, "mutants: %d of %d caught", len(ms)-bad, len(ms))
	if bad > 0 {
		return 1
	}
	return 0
}

func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }

// moduleRoot is the nearest directory upwards that has a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", fmt.Errorf("mutants: no go.mod here or above: run it inside the module")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}
