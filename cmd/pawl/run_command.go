package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"pawl/fence"
	"pawl/internal/guardian"
	"pawl/lockrepo"
	"pawl/lockrepo/lockclient"
)

// runUnderLock is pawl run.
func (c *cli) runUnderLock(ctx context.Context, f runFlags) error {
	if err := c.find(f.args[0]); err != nil {
		return noCommandRun(f.args[0], err)
	}
	ctx, signals := relaySignals(ctx, c.p)
	defer signals.end()
	from, err := c.lender(ctx, &f)
	if err != nil {
		return signals.instead(err)
	}
	defer from.close()
	if done, err := c.alreadyDone(ctx, from, &f); done || err != nil {
		return signals.instead(err)
	}
	l, err := c.borrow(ctx, from, &f)
	if err != nil {
		return signals.instead(c.notHad(&f, err))
	}
	own := context.WithoutCancel(ctx)
	held := l.keep(own)
	defer l.stop()
	if done, err := c.alreadyDone(own, from, &f); done || err != nil { // since we asked
		return errors.Join(err, c.giveBack(own, l))
	}
	p, err := signals.start(f.command(l))
	if err != nil {
		return errors.Join(err, c.giveBack(own, l))
	}
	loss := follow(held, l, p, f.ttl)
	return c.settle(own, &f, l, p.Result(), loss)
}

func noCommandRun(name string, err error) error {
	code := codeOf(err)
	if errors.Is(err, fs.ErrNotExist) && !strings.Contains(name, "/") {
		err = errors.New("no folder in PATH has it; cron's PATH is short: give the whole path")
	}
	return &coded{code, fmt.Errorf("%q can't be run: %w", name, err)}
}

// alreadyDone says so when the key's work was done.
func (c *cli) alreadyDone(ctx context.Context, from lender, f *runFlags) (bool, error) {
	if f.once == "" {
		return false, nil
	}
	done, err := from.done(ctx, f.lock, f.once)
	if done {
		c.p.note("pawl: not run: under lock %q it was done for %q before", clean(f.lock), clean(f.once))
	}
	return done, err
}

// borrow says what it waits for.
func (c *cli) borrow(ctx context.Context, from lender, f *runFlags) (loan, error) {
	l, err := from.acquire(ctx, f.lock, f.ttl, 0)
	if f.wait == 0 || !isHeld(err) {
		return l, err
	}
	c.p.note("pawl: %s; waiting for %s at most", clean(withoutRoom(err)), humanise(f.wait))
	return from.acquire(ctx, f.lock, f.ttl, f.wait)
}

func isHeld(err error) bool { return is(err, lockrepo.ErrHeld, lockclient.ErrHeld) }

// notHad is the end when there is no lease.
func (c *cli) notHad(f *runFlags, err error) error {
	var status *lockclient.StatusError
	switch {
	case isHeld(err):
		advice := "to wait for it, give --wait"
		if f.wait > 0 {
			advice = "the " + humanise(f.wait) + " of --wait are over"
		}
		c.p.note("pawl: not run: %s; %s", clean(withoutRoom(err)), advice)
		return said(f.held)
	case errors.Is(err, lockclient.ErrUnanswered):
		return &coded{codeUnreachable, errors.New(withoutRoom(err))}
	case errors.As(err, &status) && status.Slug == "unauthorized" && f.keyFile == "":
		return &coded{codeUsage, errors.New("the server wants a key: give --key-file with a file that has one; to make one, run: pawl key create")}
	case errors.As(err, &status):
		return &coded{codeUsage, errors.New(withoutRoom(err))}
	}
	return err
}

func withoutRoom(err error) string {
	return strings.TrimPrefix(sentence(err), "lockclient: ")
}

// command is what the guardian gets.
func (f *runFlags) command(l loan) guardian.Command {
	return guardian.Command{
		Guardian: []string{"pawl", "guardian"}, Args: f.args,
		Env: append(os.Environ(), "PAWL_LOCK="+f.lock, "PAWL_TOKEN="+strconv.FormatInt(l.token().Seq, 10), "PAWL_HOLDER="+l.holder(),
			"PAWL_TTL="+strconv.FormatFloat(f.ttl.Seconds(), 'f', -1, 64)+"s"),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Grace: f.grace, Deadline: deadline(l), Sole: true,
	}
}

// deadline is when the lease can't be believed in any more. The clock is read first: a pause after that makes it earlier.
func deadline(l loan) time.Duration {
	now := guardian.Clock()
	return now + l.left()
}

// follow tells the guardian of each renewal and of the loss, until the command has ended. It returns the loss.
func follow(held context.Context, l loan, p *guardian.Process, ttl time.Duration) (loss error) {
	tick := time.NewTicker(min(max(ttl/50, 5*time.Millisecond), 500*time.Millisecond))
	defer tick.Stop()
	told, lost := deadline(l), held.Done()
	for {
		select {
		case <-p.Done():
			return loss
		case <-lost:
			loss, lost = context.Cause(held), nil
			_ = p.Kill() // if it can't hear, its deadline has come
		case <-tick.C:
			told = inform(p, l, told)
		}
	}
}

// inform tells the guardian the deadline where it isn't the one that it was told. Most are later; a renewal may also be given
// less than the one before, as by a server that lets nobody hold a lock for so long. A pause between the two clocks that are
// read makes a deadline earlier: what was one is seen at the second look.
func inform(p *guardian.Process, l loan, told time.Duration) time.Duration {
	d := deadline(l)
	if d < told-time.Millisecond {
		d = max(d, deadline(l))
	}
	switch {
	case d > told+time.Millisecond:
		p.Extend(d)
	case d < told-time.Millisecond:
		p.Shorten(d)
	default:
		return told
	}
	return d
}

// named is the lease in pawl's own lines.
func named(t fence.Token) string {
	return fmt.Sprintf("%q with token %s", clean(t.Lock), fence.FormatSeq(t.Seq))
}
