package guardian

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// leftBehind is the reason when the command has ended by itself, and others of its tree haven't.
const leftBehind Why = "left behind"

// end sends TERM to the tree and sets the time of KILL. Once begun, it goes on: a newer deadline doesn't call it off.
func (g *guard) end(why Why) {
	if g.ending {
		return
	}
	g.why, g.ending = why, true
	g.killAt = min(Clock()+g.Grace, g.Deadline-lead)
	g.tell(why)
	g.send(syscall.SIGTERM)
	g.send(syscall.SIGCONT) // who is stopped must hear it
}

// tell says what nobody else may be left to say.
func (g *guard) tell(why Why) {
	if why == Orphaned {
		_, _ = fmt.Fprintf(g.said, "pawl: pawl run has ended before its command, which is ended now; its lock is free when the lease has run out\n")
	}
}

// send signals the group as a whole, and those that have left it one by one: as they were before, since who loses its parent
// meanwhile may be missed by a look, and who has come since.
func (g *guard) send(sig syscall.Signal) {
	seen := map[proc]bool{}
	for _, p := range below(self()) {
		p.parent = 0 // it may change
		seen[p] = true
	}
	g.forward(sig)
	for p := range seen {
		if p.group != g.pid {
			p.signal(sig)
		}
	}
	g.signalBelow(self(), sig, func(p proc) bool { p.parent = 0; return p.group != g.pid && !seen[p] })
}

// forward signals the group. Who is suspended must hear what ends it.
func (g *guard) forward(sig syscall.Signal) {
	g.toGroup(sig)
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		g.toGroup(syscall.SIGCONT)
	default:
	}
}

// toGroup signals the group at once, so that none of it is forgotten; when the command has been waited for, the group's
// number may be another's, and it signals those that it knows.
func (g *guard) toGroup(sig syscall.Signal) {
	if !g.exited || g.groupLeft(g.pid) {
		_ = syscall.Kill(-g.pid, sig) // there may be nobody
		return
	}
	g.signalBelow(self(), sig, func(p proc) bool { return p.group == g.pid })
}

// backoff is for those that don't end at once: one in a device, or another user's.
type backoff struct {
	said  io.Writer // nil: nobody is told
	pause time.Duration
	sum   time.Duration
}

const (
	longestPause = 250 * time.Millisecond
	worthALine   = 5 * time.Second
)

// wait returns when a child has ended, or after a pause that grows.
func (b *backoff) wait(children <-chan os.Signal) {
	b.pause = min(max(2*b.pause, time.Millisecond), longestPause)
	if b.sum += b.pause; b.sum > worthALine && b.said != nil {
		_, _ = fmt.Fprintf(b.said, "pawl: processes of the command don't end by KILL; waiting for %v\n", numbers(below(self())))
		b.said = nil
	}
	t := time.NewTimer(b.pause)
	defer t.Stop()
	select {
	case <-children:
	case <-t.C:
	}
}

func numbers(all []proc) (pids []int) {
	for _, p := range all {
		pids = append(pids, p.pid)
	}
	return pids
}

// kill returns when no process of the tree is left.
func (g *guard) kill() {
	for b := (backoff{said: g.said}); !g.gone; {
		g.toGroup(syscall.SIGKILL)
		g.killBelow(self())
		killChildren(func() bool { g.reap(); return g.gone })
		if !g.gone {
			b.wait(g.children) // a child that has just been adopted tells nobody
		}
	}
	if g.why != leftBehind {
		g.killMarked()
	}
}
