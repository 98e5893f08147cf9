package kinds

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"pawl/internal/guardian"
	"pawl/jobs"
)

// guarded is what the guardian gets. Its own grace is for a lease that isn't renewed or an owner that has ended: TERM
// comes that long before the deadline, so it must leave room for a beat or two that is late.
func (c Command) guarded(run *jobs.Run, out *os.File) guardian.Command {
	value := values(run)
	args := make([]string, len(c.Argv))
	for i, a := range c.Argv {
		args[i] = a.Expand(value)
	}
	if c.Shell {
		args = append([]string{"/bin/sh", "-c"}, args...)
	}
	return guardian.Command{
		Guardian: c.Guardian, Args: args, Env: c.env(run, value), Dir: c.Dir, Stdout: out, Stderr: out,
		Grace: min(c.Grace, run.TTL()/3), Deadline: deadline(run),
	}
}

// env is the command's environment. Later entries win.
func (c Command) env(run *jobs.Run, value func(string) string) []string {
	var env []string
	if c.InheritEnv {
		env = slices.DeleteFunc(os.Environ(), isShards)
	} else {
		for _, name := range []string{"PATH", "HOME", "TMPDIR", "PAWL_GUARD"} { // the last is of guardians above
			if v, ok := os.LookupEnv(name); ok {
				env = append(env, name+"="+v)
			}
		}
	}
	for name, v := range c.Env {
		env = append(env, name+"="+v.Expand(value))
	}
	if s := run.Shard; s.Key != "" {
		env = append(env, "PAWL_SHARD="+s.Key, "PAWL_SHARD_INDEX="+strconv.Itoa(s.Index), "PAWL_SHARDS="+strconv.Itoa(s.Count))
	}
	token := run.Token()
	return append(env,
		"PAWL_LOCK="+token.Lock, "PAWL_TOKEN="+strconv.FormatInt(token.Seq, 10), "PAWL_HOLDER="+run.Holder(),
		"PAWL_TTL="+strconv.FormatFloat(run.TTL().Seconds(), 'f', -1, 64)+"s",
		"PAWL_JOB="+run.Job, "PAWL_PERIOD="+run.Period.Key, "PAWL_REVISION="+strconv.Itoa(run.Revision),
		"PAWL_ATTEMPT="+strconv.Itoa(run.Attempt), "PAWL_RUN="+run.ID.String(),
		"PAWL_SCHEDULED_AT="+run.ScheduledAt.UTC().Format(time.RFC3339))
}

// isShards reports whether an entry is of a shard: this process may be a command of one itself.
func isShards(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	return slices.Contains([]string{"PAWL_SHARD", "PAWL_SHARD_INDEX", "PAWL_SHARDS"}, name)
}

// deadline is when nothing of the command may be left. The clock is read first: a pause after that makes it earlier.
func deadline(run *jobs.Run) time.Duration {
	now := guardian.Clock()
	return now + run.Left()
}

const (
	slowestLook = 500 * time.Millisecond
	soonerLook  = 20 * time.Millisecond
	mostSpare   = 2 * time.Second
)

// follow tells the guardian of each renewal, and the command when to end, until it has ended. It returns why it was told
// to.
func (c Command) follow(ctx context.Context, run *jobs.Run, p *guardian.Process) (stopped error) {
	tick := time.NewTicker(min(max(run.TTL()/50, 5*time.Millisecond), slowestLook))
	defer tick.Stop()
	var kill <-chan time.Time
	told, ended, draining := deadline(run), ctx.Done(), run.Draining()
	if c.OnDrain == DrainFinish {
		draining = nil
	}
	var spare time.Duration // what is left when KILL is sent: for the end, and for the output
	stop := func(why error) {
		if stopped = why; kill == nil {
			_ = p.Signal(syscall.SIGTERM)
			kill = time.After(c.Grace)
		}
	}
	for {
		select {
		case <-p.Done():
			return stopped
		case <-draining:
			draining = nil
			stop(jobs.ErrDrained)
		case <-ended:
			ended = nil
			stop(context.Cause(ctx))
			spare = max(min(run.Left()/2, mostSpare), 1)
			tick.Reset(soonerLook)
		case <-kill:
			_ = p.Kill()
		case <-tick.C:
		}
		if run.Left() < spare {
			_ = p.Kill() // if it can't hear, its deadline has come
		}
		if d := deadline(run); d > told+time.Millisecond {
			told = d
			p.Extend(d)
		}
	}
}
