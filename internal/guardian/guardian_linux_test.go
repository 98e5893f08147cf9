package guardian

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// marked counts the processes that carry a test's variable, in whichever tree they are.
func marked(value string) (n int) {
	t := tree{marker: value}
	for _, pid := range pids() {
		if _, ok := look(pid); ok && t.marks(pid) {
			n++
		}
	}
	return n
}

// stubborn heeds no TERM, nor does its grandchild, which has left session and group. It says when it is there.
const stubborn = `trap '' TERM; setsid sh -c 'trap "" TERM; : > "$READY"; sleep 1000; sleep 1000' & while :; do sleep 0.01; done`

func startStubborn(t *testing.T, c Command) *Process {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready")
	c.Args, c.Env = []string{"/bin/sh", "-c", stubborn}, append(os.Environ(), "READY="+ready)
	p := begin(t, c)
	written(t, ready)
	return p
}

func TestAKilledGuardianTakesTheTreeAlong(t *testing.T) {
	t.Parallel()
	p := startStubborn(t, script(""))
	if marked(p.marker) < 2 { // their sleeps come and go
		t.Fatalf("%d processes carry the marker", marked(p.marker))
	}
	start := time.Now()
	_ = p.cmd.Process.Kill()
	if r := p.Result(); r.Why != Unguarded || r.Code != 137 {
		t.Errorf("%+v", r)
	}
	t.Logf("gone %v after the guardian was killed", time.Since(start))
	if n := marked(p.marker); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestAStoppedGuardianEndsTheTreeAtTheDeadline(t *testing.T) {
	t.Parallel()
	c := script("")
	c.Grace, c.Deadline = 0, Clock()+3*time.Second
	p := startStubborn(t, c)
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r, end := p.Result(), Clock()
	if r.Why != Deadline || end < c.Deadline-lead || end > c.Deadline+200*time.Millisecond {
		t.Errorf("%+v, %v after the deadline", r, end-c.Deadline)
	}
	if n := marked(p.marker); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestAGuardianThatWasStoppedFirstHearsWhatCameMeanwhile(t *testing.T) {
	t.Parallel()
	c := script("")
	c.Grace, c.Deadline = 0, Clock()+3*time.Second
	p := startStubborn(t, c)
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	for Clock() < c.Deadline+time.Second {
		p.Extend(Clock() + time.Minute)
		<-time.After(100 * time.Millisecond) // real clock: the guardian's own is the kernel's
	}
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	select {
	case <-p.Done():
		t.Fatalf("%+v", p.Result())
	case <-time.After(500 * time.Millisecond): // real clock: as above
	}
	_ = p.Kill()
	if r := p.Result(); r.Why != Killed {
		t.Errorf("%+v", r)
	}
}

// owner is a process that owns a command, and whose other descendants are none.
func owner(t *testing.T, sh string) (cmd *exec.Cmd, out *bufio.Reader, value string) {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready")
	cmd, out, value = ownerOf(t, time.Hour, []string{"/bin/sh", "-c", sh}, "READY="+ready)
	written(t, ready)
	return cmd, out, value
}

// ownerOf is an owner whose deadline is that far.
func ownerOf(t *testing.T, lasts time.Duration, args []string, env ...string) (cmd *exec.Cmd, out *bufio.Reader, value string) {
	t.Helper()
	value = rand.Text()
	cmd = exec.Command(os.Args[0], append([]string{"owner"}, args...)...)
	cmd.Env = append(append(os.Environ(), markerVariable+"="+value, ownFor+"="+lasts.String()), env...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewReader(pipe), value
}

func TestAKilledOwnerTakesTheTreeAlong(t *testing.T) {
	t.Parallel()
	cmd, _, value := owner(t, stubborn)
	start := time.Now()
	_ = cmd.Process.Kill()
	eventually(t, "nobody is left", func() bool { return marked(value) == 0 })
	gone := time.Since(start)
	t.Logf("gone %v after the owner was killed, the grace being 1s", gone)
	if gone < 900*time.Millisecond || gone > 5*time.Second {
		t.Error("that is not the grace")
	}
}

// The orphans have cleared their environment: only the owner's being a subreaper finds them.
func TestOrphansOfAKilledGuardianFallToASoleOwner(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	cmd, out, _ := owner(t, `env -i setsid sh -c 'trap "" TERM; while :; do echo x >> `+file+`; sleep 0.01; done' & `+stubborn)
	written(t, file)
	child(t, cmd.Process.Pid).signal(syscall.SIGKILL)
	r := told(t, out)
	before := size(t, file)
	<-time.After(100 * time.Millisecond) // real clock: nobody can tell that nothing is written
	if r.Why != Unguarded || size(t, file) != before {
		t.Errorf("%+v; the orphan wrote %d bytes afterwards", r, size(t, file)-before)
	}
}

// Where the kernel lists no children, all processes are read: the answer is the same.
func TestDescendantsAreFoundEitherWay(t *testing.T) {
	t.Parallel()
	ready := filepath.Join(t.TempDir(), "ready")
	p := begin(t, script("setsid sh -c 'sleep 1000 & : > "+ready+"; wait' & sleep 1000 & wait"))
	written(t, ready)
	byChildren, byParents := below(p.cmd.Process.Pid), belowByParents(p.cmd.Process.Pid)
	order := func(a, b proc) int { return a.pid - b.pid }
	slices.SortFunc(byChildren, order)
	slices.SortFunc(byParents, order)
	if len(byChildren) != 4 || !slices.Equal(byChildren, byParents) {
		t.Errorf("%v and %v", byChildren, byParents)
	}
	if none := below(1 << 30); len(none) != 0 {
		t.Errorf("%v below nobody", none)
	}
	_ = p.Kill()
}

// child finds the one child of a process.
func child(t *testing.T, parent int) proc {
	t.Helper()
	for _, p := range below(parent) {
		if p.parent == parent {
			return p
		}
	}
	t.Fatalf("%d has no child", parent)
	return proc{}
}

// Nobody is left who could look for it: the kernel does it.
func TestACommandDoesNotOutliveAKilledGuardianWhoseOwnerIsStopped(t *testing.T) {
	t.Parallel()
	cmd, out, _ := owner(t, stubborn)
	guardian := child(t, cmd.Process.Pid)
	command := child(t, guardian.pid)
	_ = cmd.Process.Signal(syscall.SIGSTOP)
	guardian.signal(syscall.SIGKILL)
	eventually(t, "the command has ended", func() bool {
		now, ok := look(command.pid)
		return !ok || now.started != command.started
	})
	_ = cmd.Process.Signal(syscall.SIGCONT)
	if r := told(t, out); r.Why != Unguarded { // and the grandchild is gone
		t.Errorf("%+v", r)
	}
}

// told waits for the result that an owner prints.
func told(t *testing.T, out *bufio.Reader) (r Result) {
	t.Helper()
	if err := json.NewDecoder(out).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhoIsSuspendedHearsWhatEndsIt(t *testing.T) {
	t.Parallel()
	ready := filepath.Join(t.TempDir(), "ready")
	p := begin(t, script(": > "+ready+"; exec sleep 1000"))
	written(t, ready)
	command := child(t, p.cmd.Process.Pid)
	if err := p.Signal(syscall.SIGTSTP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is suspended", func() bool {
		stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(command.pid), "stat")) // gone: never
		return bytes.Contains(stat, []byte(") T "))
	})
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := p.Result(); r.Code != 143 || r.Why != ByItself {
		t.Errorf("%+v", r)
	}
}

func TestWhoHasLeftTheGroupIsAskedToo(t *testing.T) {
	t.Parallel()
	out, read := output(t)
	ready := filepath.Join(t.TempDir(), "ready")
	c := script(`setsid sh -c 'trap "echo asked; exit" TERM; : > ` + ready + `; while :; do sleep 0.01; done' & wait`)
	c.Stdout = out
	p := begin(t, c)
	written(t, ready)
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	if r := p.Result(); r.Why != Ended || read() != "asked\n" {
		t.Errorf("%+v, %q", r, read())
	}
}

func size(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
