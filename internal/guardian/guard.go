package guardian

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

const (
	// lead is how long before the deadline KILL is sent.
	lead = 50 * time.Millisecond
	// nap is the longest that the guardian waits without a look at the clock: timers stand still while the machine sleeps.
	nap = 250 * time.Millisecond
)

var errNotForPeople = errors.New("this is a part of pawl run, and not for people; see: pawl run --help")

// guard is the guardian's state. One goroutine has it.
type guard struct {
	tree
	spec

	orders   <-chan order // nil when the owner has ended
	children <-chan os.Signal
	said     io.Writer

	pid    int
	status syscall.WaitStatus
	exited bool // the command itself
	gone   bool // all of the tree

	why    Why
	ending bool
	killAt time.Duration
}

// Main is the guardian. args is what [Start] has put behind Command.Guardian. It
// must be called on the main goroutine, and the process must end when it returns.
// Nobody is told of an error but by the exit code and by the words on stderr.
func Main(args []string, stderr io.Writer) int {
	// The kernel kills the command when the thread that has started it ends: this one must not end before.
	runtime.LockOSThread()
	in, out, argv, err := parse(args)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "pawl: %v\n", err)
		return 2
	}
	// Its owner's terminal doesn't reach it. Who signals it by name means its owner. A broken pipe is an error, not an end.
	for _, s := range append(Forwarded(), syscall.SIGPIPE) {
		if !signal.Ignored(s) { // nohup: the command shall ignore it too
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)

	orders := json.NewDecoder(in)
	g := &guard{children: children, said: stderr}
	if err := orders.Decode(&g.spec); err != nil {
		return 1 // the owner has ended: nothing was started
	}
	g.marker = g.Marker
	r := g.run(argv, orders)
	if json.NewEncoder(out).Encode(r) != nil {
		return 1
	}
	return 0
}

// parse takes over the descriptors that the owner has handed down, which the command must not get.
func parse(args []string) (in, out *os.File, argv []string, err error) {
	if len(args) < 2 || args[0] != "--" {
		return nil, nil, nil, errNotForPeople
	}
	ends := [2]*os.File{}
	for i := range ends {
		fd := 3 + i
		syscall.CloseOnExec(fd)
		ends[i] = os.NewFile(uintptr(fd), "owner")
		if info, err := ends[i].Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
			return nil, nil, nil, errNotForPeople
		}
	}
	return ends[0], ends[1], args[1:], nil
}

func (g *guard) run(argv []string, orders *json.Decoder) Result {
	if err := adoptOrphans(); err != nil {
		return Result{Code: notExecutable, Why: Unstarted, Err: "become a child subreaper: " + err.Error()}
	}
	g.orders = listen(orders)
	if g.late() {
		return Result{Code: 128 + int(syscall.SIGKILL), Why: Deadline, After: syscall.SIGKILL}
	}
	if err := g.start(argv); err != nil {
		return Result{Code: codeOf(err), Why: Unstarted, Err: innermost(err).Error()}
	}
	// Who reads what the command writes must see it end, and who writes what it reads.
	_, _ = os.Stdin.Close(), os.Stdout.Close()
	g.watch()
	r := Result{Code: g.status.ExitStatus(), Why: g.why}
	if r.Why == leftBehind {
		r.Why, r.Left = ByItself, true
	}
	if g.status.Signaled() {
		r.After = g.status.Signal()
		r.Code = 128 + int(r.After)
	}
	return r
}

func (g *guard) start(argv []string) error {
	if g.Dir != "" {
		if err := os.Chdir(g.Dir); err != nil {
			return err
		}
	}
	path, _, err := Find(argv[0])
	if err != nil {
		return err
	}
	attr := &os.ProcAttr{Env: mark(os.Environ(), g.Marker), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}}
	attr.Sys = dieWithGuardian(&syscall.SysProcAttr{Setpgid: true})
	p, err := os.StartProcess(path, argv, attr)
	if errors.Is(err, syscall.ENOEXEC) { // as execvp does
		p, err = os.StartProcess("/bin/sh", append([]string{"sh", path}, argv[1:]...), attr)
	}
	if err != nil {
		return err
	}
	g.pid = p.Pid
	return p.Release() // reap waits for it, with all others
}

// late says that the command must not even be started: its owner, or this process, may have been stopped until now. A later
// deadline may be on its way; whatever else is, ends it.
func (g *guard) late() bool {
	t := time.NewTimer(lead / 2)
	defer t.Stop()
	for Clock() >= g.Deadline-lead {
		select {
		case o := <-g.orders:
			if o.Deadline == 0 {
				return true
			}
			g.Deadline = o.Deadline
		case <-t.C:
			return true
		}
	}
	return false
}

// watch returns when no process is left.
func (g *guard) watch() {
	w := newWaker()
	for !g.gone {
		now, due := Clock(), g.due()
		w.at(due)
		switch {
		case now < due:
			g.wait(min(due-now, nap))
		case g.ending:
			g.kill()
		default:
			if g.catchUp(); !g.ending && Clock() >= g.due() {
				g.end(Deadline)
			}
		}
	}
}

// due is when something must be done.
func (g *guard) due() time.Duration {
	if g.ending {
		return g.killAt
	}
	return g.Deadline - max(g.Grace, lead)
}

func (g *guard) wait(most time.Duration) {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case o, open := <-g.orders:
		g.obey(o, open)
	case <-g.children:
		g.reap()
	case <-t.C:
	}
}

// catchUp hears what the owner may have said while this process was stopped, before it is judged.
func (g *guard) catchUp() {
	t := time.NewTimer(lead / 2)
	defer t.Stop()
	for {
		select {
		case o, open := <-g.orders:
			g.obey(o, open)
		case <-t.C:
			return
		}
	}
}

func (g *guard) obey(o order, open bool) {
	switch {
	case !open:
		g.orders = nil
		g.end(Orphaned)
	case o.Deadline != 0:
		g.Deadline = o.Deadline
		if g.ending { // a newer one doesn't call it off, but may hasten it
			g.killAt = min(g.killAt, g.Deadline-lead)
		}
	case o.Signal != 0:
		g.forward(o.Signal)
	case o.End:
		g.end(Ended)
	case o.Kill:
		if !g.ending || g.why == leftBehind {
			g.why, g.ending = Killed, true
		}
		g.killAt = 0
	}
}

// reap waits for those that have ended, the adopted ones too.
func (g *guard) reap() {
	g.gone = reapAll(func(pid int, status syscall.WaitStatus) {
		if pid == g.pid {
			g.exited, g.status = true, status
		}
	}) && !g.groupLeft(g.pid)
	if g.exited && !g.gone && !g.ending {
		g.end(leftBehind)
	}
}

// reapAll waits for all children that have ended, and says whether none is left.
func reapAll(each func(pid int, status syscall.WaitStatus)) (gone bool) {
	for {
		var status syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return errors.Is(err, syscall.ECHILD)
		case pid == 0:
			return false
		default:
			each(pid, status)
		}
	}
}
