package guardian

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of all below it that lose theirs.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

func dieWithGuardian(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	attr.Pdeathsig = syscall.SIGKILL
	return attr
}

// spin is how long children are hunted before everything is looked through again.
const spin = 10 * time.Millisecond

// killChildren sends KILL to the children of this process, and reaps them, until there is none or spin is over. Whom they
// leave is a child next, since this process adopts orphans: so it catches who forks and ends faster than /proc can be looked
// through. A child's number is nobody else's until it is reaped.
func killChildren(reap func() (gone bool)) (gone bool) {
	for over := Clock() + spin; Clock() < over; {
		mine, _ := children(os.Getpid())            // none where the kernel doesn't tell
		for _, pid := range slices.Backward(mine) { // the latest first
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		if reap() {
			return true
		}
	}
	return false
}

// groupLeft is not asked here: all that is left of the group are our children.
func (tree) groupLeft(int) bool { return false }

// killBelow sends KILL to all descendants of a process.
func (t tree) killBelow(root int) {
	t.signalBelow(root, syscall.SIGKILL, func(proc) bool { return true })
}

func (t tree) signalBelow(root int, sig syscall.Signal, which func(proc) bool) {
	for _, p := range below(root) {
		if which(p) {
			p.signal(sig)
		}
	}
}

// below lists the descendants of a process, parents first. It reads of no others: on a machine with many that counts.
func below(root int) (out []proc) {
	for all := []int{root}; len(all) > 0; all = all[1:] {
		kids, err := children(all[0])
		if err != nil && all[0] == root {
			return belowByParents(root) // a kernel that doesn't list children
		}
		for _, pid := range kids {
			if p, ok := look(pid); ok {
				out, all = append(out, p), append(all, pid)
			}
		}
	}
	return out
}

// children are those of all threads of a process.
func children(pid int) (out []int, err error) {
	tasks := filepath.Join("/proc", strconv.Itoa(pid), "task")
	for _, tid := range numbered(tasks) {
		b, e := os.ReadFile(filepath.Join(tasks, strconv.Itoa(tid), "children"))
		err = e
		for f := range strings.FieldsSeq(string(b)) {
			if child, e := strconv.Atoi(f); e == nil {
				out = append(out, child)
			}
		}
	}
	if len(out) > 0 {
		err = nil // a thread has just ended
	}
	return out, err
}

// belowByParents is below for any kernel: it reads of all processes whose child they are.
func belowByParents(root int) (out []proc) {
	children := map[int][]proc{}
	for _, pid := range pids() {
		if p, ok := look(pid); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	out = children[root]
	for i := 0; i < len(out); i++ {
		out = append(out, children[out[i].pid]...)
		delete(children, out[i].pid)
	}
	return out
}

func pids() []int { return numbered("/proc") }

// numbered lists the entries of a directory that are numbers.
func numbered(name string) (out []int) {
	dir, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1) // what there is of them
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// look reads one process, unless it has ended.
func look(pid int) (p proc, ok bool) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return p, false
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // its name may contain anything
	if len(f) < 20 {
		return p, false
	}
	// Its first thread may have ended before the others: then it is called a zombie, and runs.
	if threads, _ := strconv.Atoi(f[17]); threads <= 1 && (f[0] == "Z" || f[0] == "X") {
		return p, false
	}
	p.pid, p.started = pid, f[19]
	p.parent, _ = strconv.Atoi(f[1])
	p.group, _ = strconv.Atoi(f[2])
	return p, true
}

// signal reaches this process or none: its number may be another's by now.
func (p proc) signal(sig syscall.Signal) {
	h, err := os.FindProcess(p.pid) // a pidfd
	if err != nil {
		return
	}
	defer func() { _ = h.Release() }()
	if now, ok := look(p.pid); ok && now.started == p.started {
		_ = h.Signal(sig)
	}
}

// killMarked sends KILL to all that carry the marker, and returns how many they were.
func (t tree) killMarked() (n int) {
	for _, pid := range pids() {
		p, ok := look(pid)
		if ok && t.marks(pid) {
			p.signal(syscall.SIGKILL)
			n++
		}
	}
	return n
}

func (t tree) marks(pid int) bool {
	b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ")) // another user's can't be read
	if len(b) == 0 {                                                          // its first thread has ended
		threads, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/[0-9]*/environ"))
		for _, file := range threads {
			more, _ := os.ReadFile(file)
			b = append(b, more...)
		}
	}
	for e := range bytes.SplitSeq(b, []byte{0}) {
		if all, ok := bytes.CutPrefix(e, []byte(markerVariable+"=")); ok && bytes.Contains(all, []byte(t.marker)) {
			return true
		}
	}
	return false
}
