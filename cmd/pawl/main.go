// Pawl runs scheduled jobs on Postgres so that every period is settled once, whatever dies.
//
// It promises:
//   - Exit codes: 0 ok, 1 failed, 2 wrong use or input, 3 not held, refused or conflict, 4 database or server unreachable.
//   - A flag beats its variable, and a variable beats the default.
//   - With --json there is exactly one JSON value on standard output, and none on an error; all else goes to standard
//     error.
//   - What goes wrong is one sentence that names the fix, and no password is in it.
//   - The first signal ends the command in good order, a second one at once.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan os.Signal, 1)
	signal.Notify(first, signals...)
	go func() {
		<-first
		signal.Stop(first) // From here on a signal does what it does by default, also to who has just seen ctx end.
		cancel()
	}()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program but for what belongs to the process: it returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &cli{getenv: getenv, stdin: stdin, p: newPrinter(stdout, stderr, getenv)}
	root := c.root() //nolint:contextcheck // each command gets ctx when it runs
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return c.p.exit(root.ExecuteContext(ctx))
}
