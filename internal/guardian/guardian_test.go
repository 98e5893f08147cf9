package guardian

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary play the guardian, and an owner.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "guardian":
		os.Exit(Main(os.Args[2:], os.Stderr))
	case len(os.Args) > 1 && os.Args[1] == "owner":
		os.Exit(own(os.Args[2:]))
	case len(os.Args) > 1 && os.Args[1] == "headless":
		headless(os.Args[2])
	}
	os.Exit(m.Run())
}

// own runs a command whose deadline is far unless ownFor says otherwise, and prints its result.
func own(args []string) int {
	signal.Ignore(syscall.SIGINT)
	lasts, err := time.ParseDuration(os.Getenv(ownFor))
	if err != nil {
		lasts = time.Hour
	}
	p, err := Start(Command{
		Guardian: []string{"pawl", "guardian"}, Args: args, Sole: true, Grace: time.Second, Deadline: Clock() + lasts, Stderr: os.Stderr,
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if json.NewEncoder(os.Stdout).Encode(p.Result()) != nil {
		return 1
	}
	return 0
}

// headless writes to a file for ever, in a session of its own, when its first thread has ended: /proc shows a zombie.
func headless(file string) {
	_, _ = syscall.Setsid() // a child of the command: it leads no group
	go func() {
		for {
			note(file)
		}
	}()
	runtime.LockOSThread()
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
}

func note(file string) {
	if f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err == nil {
		_, _ = f.WriteString("x")
		_ = f.Close()
	}
	<-time.After(time.Millisecond) // real clock: of another process
}

const ownFor = "PAWL_TEST_OWN_FOR"

// script is a command of this test's.
func script(sh string) Command {
	return Command{Guardian: []string{"pawl", "guardian"}, Args: []string{"/bin/sh", "-c", sh}, Deadline: Clock() + time.Minute, Grace: 10 * time.Second}
}

func begin(t *testing.T, c Command) *Process {
	t.Helper()
	p, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.Done()
	})
	return p
}

func eventually(t *testing.T, what string, fact func() bool) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for !fact() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("after 20s still not true: %s", what)
		}
	}
}

// written waits for a file that a command makes.
func written(t *testing.T, file string) {
	t.Helper()
	eventually(t, "the command has made "+filepath.Base(file), func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
}

// output is a file to write to, and what is in it later.
func output(t *testing.T) (f *os.File, read func() string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, func() string {
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

func TestACommandsEndIsToldAsItWas(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	for _, file := range []struct {
		name, text string
		mode       os.FileMode
	}{{plain, "exit 9\n", 0o755}, {plain + ".txt", "", 0o644}} {
		if err := os.WriteFile(file.name, []byte(file.text), file.mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args []string
		want Result
	}{
		"exit 0":               {[]string{"true"}, Result{}},
		"exit 7":               {[]string{"sh", "-c", "exit 7"}, Result{Code: 7}},
		"signal 15":            {[]string{"sh", "-c", "kill -TERM $$"}, Result{Code: 143, After: syscall.SIGTERM}},
		"no such command":      {[]string{"pawl-no-such"}, Result{Code: 127, Why: Unstarted, Err: "file does not exist"}},
		"no such file":         {[]string{"/pawl/no/such"}, Result{Code: 127, Why: Unstarted, Err: "no such file or directory"}},
		"not executable":       {[]string{plain + ".txt"}, Result{Code: 126, Why: Unstarted, Err: "permission denied"}},
		"a directory":          {[]string{"/tmp"}, Result{Code: 126, Why: Unstarted, Err: "is a directory"}},
		"a script without #!":  {[]string{plain}, Result{Code: 9}},
		"arguments like ours":  {[]string{"sh", "-c", `test "$*" = "-- --help -x"`, "sh", "--", "--help", "-x"}, Result{}},
		"what it leaves, ends": {[]string{"sh", "-c", "setsid sleep 1000 & sleep 1000 & exit 3"}, Result{Code: 3, Left: true}},
	} {
		cmd := script("")
		cmd.Args = c.args
		if got := begin(t, cmd).Result(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestSignalsReachTheWholeGroup(t *testing.T) {
	t.Parallel()
	out, read := output(t)
	ready := filepath.Join(t.TempDir(), "ready")
	// Their sleeps hear it too, and end.
	c := script(`(trap 'echo child' USR1; : > ` + ready + `.1; while :; do sleep 0.01; done) &
		trap 'echo parent' USR1; : > ` + ready + `.2; while :; do sleep 0.01; done`)
	c.Stdout = out
	p := begin(t, c)
	written(t, ready+".1")
	written(t, ready+".2")
	if err := p.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both have heard it", func() bool { return strings.Contains(read(), "child") && strings.Contains(read(), "parent") })
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := p.Result(); r.Code != 143 || r.Why != ByItself {
		t.Errorf("%+v", r)
	}
}

func TestDescriptorsAndEnvironmentAreHandedDown(t *testing.T) {
	t.Parallel()
	in, _ := output(t)
	if _, err := in.WriteString("hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	out, read := output(t)
	c := script(`cat; echo " $X $PAWL_GUARD"; ls /proc/self/fd | tr '\n' ' '; pwd`)
	c.Stdin, c.Stdout, c.Env, c.Dir = in, out, append(os.Environ(), "X=y", "PAWL_GUARD=above"), t.TempDir()
	p := begin(t, c)
	if r := p.Result(); r != (Result{}) {
		t.Fatalf("%+v", r)
	}
	// ls lists what this process was handed itself, which is passed on.
	plain := exec.Command(c.Args[0], c.Args[1:]...)
	plain.Env, plain.Dir, plain.Stdin = mark(c.Env, p.marker), c.Dir, strings.NewReader("hello")
	want, err := plain.Output()
	if got := read(); err != nil || got != string(want) {
		t.Errorf("%q, want %q; %v", got, want, err)
	}
}

func TestTermIsSentAGraceBeforeTheDeadlineAndKillBeforeIt(t *testing.T) {
	t.Parallel()
	out, read := output(t)
	c := script(`trap 'cut -d. -f1,2 /proc/uptime' TERM; setsid sh -c "trap '' TERM; sleep 1000; sleep 1000" & sleep 1000; while :; do sleep 0.01; done`)
	c.Stdout, c.Grace, c.Deadline = out, 500*time.Millisecond, Clock()+1500*time.Millisecond
	p := begin(t, c)
	r, end := p.Result(), Clock()
	if r.Why != Deadline || r.Code != 137 {
		t.Errorf("%+v", r)
	}
	var seconds float64
	if _, err := fmt.Sscan(read(), &seconds); err != nil {
		t.Fatalf("it has heard no TERM: %q", read())
	}
	term := time.Duration(seconds * float64(time.Second))
	if early := c.Deadline - term; early < 200*time.Millisecond || early > 520*time.Millisecond {
		t.Errorf("TERM %v before the deadline, want the grace of 500ms", early)
	}
	if end > c.Deadline+200*time.Millisecond || end < c.Deadline-lead {
		t.Errorf("the tree was gone %v after the deadline", end-c.Deadline)
	}
}

func TestACommandIsNotStartedWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	c := script(": > " + file)
	c.Deadline = Clock() + 40*time.Millisecond // the guardian gets as far as to look
	if r := begin(t, c).Result(); r.Why != Deadline || r.Code != 137 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it has run")
	}
}

func TestANewerDeadlineCounts(t *testing.T) {
	t.Parallel()
	c := script("sleep 1; exit 5")
	c.Grace, c.Deadline = 0, Clock()+700*time.Millisecond
	p := begin(t, c)
	p.Extend(Clock() + time.Minute)
	p.Extend(Clock())                   // an older one doesn't
	p.Shorten(Clock() + 10*time.Minute) // nor does this make it later
	if r := p.Result(); r != (Result{Code: 5}) {
		t.Errorf("%+v", r)
	}
}

// A lease may be cut while it is held. The guardian obeys also when its owner is stopped right after that.
func TestAShorterDeadlineCounts(t *testing.T) {
	t.Parallel()
	for name, ignores := range map[string]string{"": "", "who ignores TERM": "trap '' TERM; "} {
		ready := filepath.Join(t.TempDir(), "ready")
		c := script(ignores + ": > " + ready + "; while :; do sleep 0.01; done")
		c.Grace, c.Deadline = 200*time.Millisecond, Clock()+time.Minute
		p := begin(t, c)
		written(t, ready)
		if ignores != "" {
			_ = p.End() // it is ending already, and would be killed after the grace
		}
		end := Clock() + 600*time.Millisecond
		p.Shorten(end)
		if r := p.Result(); Clock() > end || (r.Why != Deadline && r.Why != Ended) {
			t.Errorf("%s: %+v, %v after the deadline", name, r, Clock()-end)
		}
	}
}

func TestAShorterDeadlineCountsForAGuardianThatIsStopped(t *testing.T) {
	t.Parallel()
	ready := filepath.Join(t.TempDir(), "ready")
	c := script(": > " + ready + "; while :; do sleep 0.01; done")
	c.Grace, c.Deadline = 100*time.Millisecond, Clock()+time.Minute
	p := begin(t, c)
	written(t, ready)
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	end := Clock() + 400*time.Millisecond
	p.Shorten(end)
	if r := p.Result(); Clock() > end+2*time.Second {
		t.Errorf("%+v, %v after the deadline", r, Clock()-end)
	}
}

func TestEndAsksFirstAndKillDoesNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(*Process) error
		want Result
	}{
		"end":  {(*Process).End, Result{Code: 4, Why: Ended}},
		"kill": {(*Process).Kill, Result{Code: 137, Why: Killed, After: syscall.SIGKILL}},
	} {
		ready := filepath.Join(t.TempDir(), "ready")
		p := begin(t, script(`trap 'exit 4' TERM; : > `+ready+`; while :; do sleep 0.01; done`))
		written(t, ready)
		if err := c.end(p); err != nil {
			t.Fatal(err)
		}
		if got := p.Result(); got.Code != c.want.Code || got.Why != c.want.Why {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestMarkersOfGuardiansAboveAreKept(t *testing.T) {
	t.Parallel()
	if got, want := mark([]string{"A=b", "PAWL_GUARD=x,y", "C=d"}, "z"), []string{"A=b", "C=d", "PAWL_GUARD=x,y,z"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []Command{{Args: []string{"x"}}, {Guardian: []string{"x"}}, {Args: []string{"x"}, Guardian: []string{"x"}, Grace: -1}} {
		if _, err := Start(c); err == nil || !strings.Contains(err.Error(), "Command.") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	c := script("true")
	c.Dir = "/pawl/no/such"
	if r := begin(t, c).Result(); r.Why != Unstarted || r.Err != "no such file or directory" {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{nil, {"--"}, {"true", "x"}} {
		var said strings.Builder
		if code := Main(args, &said); code != 2 || !strings.Contains(said.String(), "not for people") {
			t.Errorf("%q: %d, %q", args, code, said.String())
		}
	}
}
