package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"pawl/internal/guardian"
	"pawl/jobs"
)

// What an exit code may mean.
const (
	ExitComplete = "complete" // the period is complete
	ExitRetry    = "retry"    // another run is needed; it counts like an error
	ExitSkip     = "skip"     // there is nothing to do: the period ends skipped
	ExitError    = "error"
)

// What a shutdown of the worker means to a command that is under way.
const (
	DrainStop   = "stop"   // it is told at once, and has Grace to come to an end
	DrainFinish = "finish" // it may go on for the runner's grace, as a job in Go does; then it is told, and has two seconds
)

// Command is a job that runs a program. Guardian and Argv are required.
//
// It is told to end by TERM to its process group, when its run takes longer than its timeout or the process shuts down (OnDrain);
// Grace later KILL ends what is left of it. When the lease is lost or can't be renewed, a guardian of its own ends it
// before the lease does.
type Command struct {
	Guardian   []string        // the words after which this binary is the guardian: see internal/guardian
	Argv       []Text          // the program and its arguments; with Shell one text
	Shell      bool            // run by /bin/sh -c
	Dir        string          // default this process's
	Env        map[string]Text // besides the PAWL_ ones
	InheritEnv bool            // this process's environment too; else only PATH, HOME and TMPDIR
	Grace      time.Duration   // between TERM and KILL; default 30s, at most what the runner waits
	OnDrain    string          // default DrainStop
	Output     Capture         // what is kept of it
	Exit       map[int]string  // what exit codes mean; default 0 is complete, and every other an error
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Badge says how its work is fenced.
func (Command) Badge() string { return "not fenced" }

// Func returns the job's function, or a [*ConfigError].
func (c Command) Func() (jobs.Func, error) {
	c.Grace = cmp.Or(c.Grace, 30*time.Second)
	c.OnDrain = cmp.Or(c.OnDrain, DrainStop)
	capture, progress, err := c.Output.check()
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, run *jobs.Run) error {
		rec := newRecorder(capture, progress, run.Progress)
		err := c.run(ctx, run, rec)
		keep(ctx, run, rec.output())
		return err
	}, nil
}

func (c Command) check() error {
	switch {
	case len(c.Guardian) == 0:
		return &ConfigError{"Guardian", c.Guardian, "name the words that make this binary the guardian"}
	case len(c.Argv) == 0:
		return &ConfigError{"Argv", "", "give the program and its arguments"}
	case c.Shell && len(c.Argv) != 1:
		return &ConfigError{"Argv", len(c.Argv), "with Shell give one text"}
	case c.OnDrain != DrainStop && c.OnDrain != DrainFinish:
		return &ConfigError{"OnDrain", c.OnDrain, "use stop or finish"}
	case c.Grace < 0:
		return &ConfigError{"Grace", c.Grace, "use a positive duration"}
	}
	for name := range c.Env {
		if !variable.MatchString(name) || strings.HasPrefix(name, "PAWL_") {
			return &ConfigError{"Env", name, "use letters, digits and _ for a name, which may not begin with PAWL_"}
		}
	}
	for code, means := range c.Exit {
		if code < 0 || code > 255 || !slices.Contains([]string{ExitComplete, ExitRetry, ExitSkip, ExitError}, means) {
			return &ConfigError{"Exit", fmt.Sprintf("%d: %s", code, means), "use a code of 0 to 255, and complete, retry, skip or error"}
		}
	}
	return nil
}

// readLate is how long a pipe is read after the command has ended: another's process may still have it.
const readLate = time.Second

// run starts the command, follows it and says what its end means.
func (c Command) run(ctx context.Context, run *jobs.Run, rec *recorder) error {
	out, in, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("kinds: pipe: %w", err)
	}
	defer func() { _ = out.Close() }()
	run.Outside()
	p, err := guardian.Start(c.guarded(run, in))
	_ = in.Close() // the guardian has it
	if err != nil {
		return err
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		drain(out, rec)
	}()
	stop := keepSoFar(ctx, run, rec)
	stopped := c.follow(ctx, run, p)
	stop()
	_ = out.SetReadDeadline(time.Now().Add(readLate))
	<-read
	rec.flush()
	r := p.Result()
	if r.Left {
		run.Logger().WarnContext(ctx, "command had left processes running, which were ended")
	}
	return c.means(r, stopped, rec)
}

// drain reads until nobody can write any more.
func drain(from *os.File, rec *recorder) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		_, _ = rec.Write(b[:n])
		if err != nil {
			return
		}
	}
}

var (
	errNotRenewed = errors.New("its lease was not renewed in time")
	errGuardian   = errors.New("its guardian was killed, and the command with it")
)

// means is what the end of the command says. stopped is why it was told to end, nil if it wasn't.
func (c Command) means(r guardian.Result, stopped error, rec *recorder) error {
	switch r.Why {
	case guardian.Unstarted:
		return fmt.Errorf("command can't be run: %s", r.Err)
	case guardian.Unguarded:
		return fmt.Errorf("command ended: %w", errGuardian)
	case guardian.Deadline:
		return fmt.Errorf("command ended: %w", cmp.Or(stopped, errNotRenewed))
	default:
	}
	how := cmp.Or(c.Exit[r.Code], ExitError)
	if _, set := c.Exit[0]; r.Code == 0 && !set {
		how = ExitComplete
	}
	end := fmt.Sprintf("exit code %d", r.Code)
	if r.After != 0 {
		end = fmt.Sprintf("exit code %d (signal %s)", r.Code, r.After)
	}
	if len(rec.last) > 0 {
		end += ": " + string(rec.last[:min(len(rec.last), 200)])
	}
	switch {
	case how == ExitComplete && r.Why != guardian.Killed:
		return nil
	case how == ExitSkip && r.Why != guardian.Killed:
		return fmt.Errorf("%w: %s", jobs.ErrSkip, end)
	case stopped != nil:
		return fmt.Errorf("%w: %s", stopped, end)
	case how == ExitRetry:
		return fmt.Errorf("command asks for another run: %s", end)
	}
	return fmt.Errorf("command failed: %s", end)
}

// soFarEvery is how often what was said so far is kept.
const soFarEvery = 2 * time.Second

// keepSoFar keeps what was said so far, until stop, which waits for the last time.
func keepSoFar(ctx context.Context, run *jobs.Run, rec *recorder) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // in its grace it talks too
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(soFarEvery)
		defer tick.Stop()
		var kept int64
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			o, more := rec.soFar(jobs.MostSoFar, kept)
			if !more {
				continue
			}
			if err := run.KeepSoFar(ctx, o); err == nil {
				kept = o.Bytes
			} else if ctx.Err() == nil {
				run.Logger().DebugContext(ctx, "output so far not kept", "error", err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// keep stores what was said. It is no reason to fail.
func keep(ctx context.Context, run *jobs.Run, o jobs.Output) {
	if o.Bytes == 0 {
		return
	}
	if err := run.Keep(ctx, o); err != nil {
		run.Logger().WarnContext(ctx, "output not kept", "error", err)
	}
}
