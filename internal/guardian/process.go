package guardian

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Why a command has ended.
type Why string

// The reasons. Where the command ended by itself there is none.
const (
	ByItself  Why = ""
	Unstarted Why = "unstarted" // it could not be started: Result.Err says why, Result.Code is 126 or 127
	Deadline  Why = "deadline"  // no newer deadline came in time
	Orphaned  Why = "orphaned"  // the owner has ended
	Ended     Why = "ended"     // [Process.End]
	Killed    Why = "killed"    // [Process.Kill]
	Unguarded Why = "unguarded" // the guardian was killed, and the command with it
)

// Result is how a command has ended. When it is told no process of its tree is
// left.
type Result struct {
	Code  int            // the command's exit code, 128+n when signal n ended it
	Why   Why            // what made it end
	Left  bool           // it ended by itself and left processes running, which were then ended
	Err   string         // why it could not be started
	After syscall.Signal // which signal ended it, 0 if none did
}

// Process is a command under a guardian.
type Process struct {
	cmd    *exec.Cmd // the guardian
	marker string
	sole   bool
	orders chan order
	dead   chan struct{} // closed when the guardian has ended
	done   chan struct{}
	result Result // once done is closed

	mu       sync.Mutex
	deadline time.Duration
	alarm    *time.Timer
	wake     *waker // while this process is stopped there is no alarm
}

// Done is closed when no process of the command's is left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Result says how the command ended. It waits for [Process.Done].
func (p *Process) Result() Result {
	<-p.done
	return p.result
}

// Extend says that the command may run until a later moment on [Clock]; an
// earlier one changes nothing.
func (p *Process) Extend(deadline time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if deadline > p.deadline && p.tell(order{Deadline: deadline}) == nil { // else the guardian is stopped, and must not be waited for longer
		p.until(deadline)
	}
}

// Shorten says that the command may run only until an earlier moment; a later
// one changes nothing. It counts even if the guardian can't hear it.
func (p *Process) Shorten(deadline time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if deadline < p.deadline {
		_ = p.tell(order{Deadline: deadline})
		p.until(deadline)
	}
}

func (p *Process) until(deadline time.Duration) {
	p.deadline = deadline
	p.alarm.Reset(p.left())
	p.wake.at(p.deadline)
}

// Signal forwards a signal to the command's process group.
func (p *Process) Signal(sig syscall.Signal) error { return p.tell(order{Signal: sig}) }

// End sends TERM to the tree, and KILL when the grace is over.
func (p *Process) End() error { return p.tell(order{End: true}) }

// Kill ends the tree at once.
func (p *Process) Kill() error { return p.tell(order{Kill: true}) }

var errDeaf = errors.New("guardian: it takes no orders any more")

func (p *Process) tell(o order) error {
	select {
	case p.orders <- o:
		return nil
	default:
		return errDeaf
	}
}

func (p *Process) left() time.Duration { return max(p.deadline-Clock(), 0) }

// unwatch is for when no process is left.
func (p *Process) unwatch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alarm.Stop()
	p.wake.end()
}

func (p *Process) wait(from io.ReadCloser) {
	var r Result
	err := json.NewDecoder(from).Decode(&r) // until it has ended, however it ends
	if err == nil {
		_, _ = io.Copy(io.Discard, from)
	}
	_ = from.Close()
	_ = p.cmd.Wait() // what it says is in r
	close(p.dead)
	if err != nil {
		r = Result{Code: 128 + int(syscall.SIGKILL), Why: Unguarded, After: syscall.SIGKILL}
		if p.mu.Lock(); p.left() == 0 {
			r.Why = Deadline
		}
		p.mu.Unlock()
		p.takeOver()
	}
	p.unwatch()
	p.result = r
	close(p.done)
}

// takeOver does what the guardian can't do any more. The kernel has killed the command.
func (p *Process) takeOver() {
	t := tree{marker: p.marker}
	for b := (backoff{}); ; b.wait(nil) {
		gone := true
		if p.sole {
			t.killBelow(os.Getpid())
			gone = killChildren(func() bool { return reapAll(func(int, syscall.WaitStatus) {}) })
		}
		if t.killMarked() == 0 && gone {
			return
		}
	}
}

// file is f as an exec.Cmd takes it: a nil *os.File is no reader.
func file(f *os.File) io.Reader {
	if f == nil {
		return nil
	}
	return f
}
