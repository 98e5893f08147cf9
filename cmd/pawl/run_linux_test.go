package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawl/internal/faults"
	"pawl/internal/pgtest"
)

// treeVariable marks all processes of a test: pawl run, its guardian, the command, and who descends from it.
const treeVariable = "PAWL_TEST_TREE"

// underLock is one pawl run, with a command that ends for nothing but KILL: it appends its token to a file as long as it
// lives, and so do a child, a grandchild in a session of its own, and one in another that has cleared its environment.
type underLock struct {
	*process
	proxy           *faults.Proxy
	db, file, value string
	token           int64
	orphan          int // the pid of the one without the marker
}

const appends = `trap '' TERM HUP INT; while :; do echo $PAWL_TOKEN >> "$FILE"; sleep 0.005; done`

const stubborn = `
export FILE
sh -c "$APPENDS" & 
setsid sh -c "$APPENDS" &
env -i PAWL_TOKEN=$PAWL_TOKEN FILE="$FILE" APPENDS="$APPENDS" PATH="$PATH" setsid sh -c 'echo $$ > "$FILE.orphan"; eval "$APPENDS"' &
eval "$APPENDS"`

func newUnderLock(t *testing.T) *underLock {
	t.Helper()
	s := &underLock{db: pgtest.URL(t), file: filepath.Join(t.TempDir(), "file"), value: rand.Text()}
	proxy, err := faults.NewProxy(filepath.Join(pgtest.Server(t).SocketDir(), ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	s.proxy = proxy
	s.process = start(t, s.env("DATABASE_URL="+through(s.db, proxy.Addr())),
		"run", "--lock", "x", "--ttl", "5s", "--", "sh", "-c", stubborn)
	pgtest.Eventually(t, 20*time.Second, "all four write", func() bool {
		b, _ := os.ReadFile(s.file + ".orphan") // not there yet
		s.orphan, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return s.orphan != 0 && len(s.tree(t)) >= 5 && len(s.lines(t)) > 100
	})
	s.token = one[int64](t, s.db, `select token from pawl.locks where name = 'x'`)
	return s
}

func (s *underLock) env(more ...string) []string {
	// The race detector lets a process that has done its work linger for a second.
	return append(more, treeVariable+"="+s.value, "FILE="+s.file, "APPENDS="+appends, "GORACE=atexit_sleep_ms=0")
}

// through is a connection string that leads through a proxy.
func through(db, addr string) string {
	_, name, _ := strings.Cut(db, "dbname=")
	if i := strings.LastIndex(db, "/"); name == "" {
		name, _, _ = strings.Cut(db[i+1:], "?")
	}
	return "postgres://postgres@" + addr + "/" + strings.Fields(name)[0] + "?sslmode=disable"
}

func (s *underLock) lines(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(s.file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// tree is the pids of the processes that belong to it and run, the wrapper and the guardian among them.
func (s *underLock) tree(t *testing.T) (pids []int) {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(dir.Name())
		if err != nil || !runs(pid) {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", dir.Name(), "environ"))
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, os.ErrPermission) {
			t.Fatal(err)
		}
		if pid == s.orphan || bytes.Contains(env, []byte(treeVariable+"="+s.value)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z ")) && !bytes.Contains(stat, []byte(") X "))
}

// guardianPid finds it by its first words.
func (s *underLock) guardianPid(t *testing.T) int {
	t.Helper()
	for _, pid := range s.tree(t) {
		words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // gone: not it
		if bytes.HasPrefix(words, []byte("pawl\x00guardian\x00")) {
			return pid
		}
	}
	t.Fatal("no guardian")
	return 0
}

// gone waits for the end of the tree, the wrapper left aside, and says when it was.
func (s *underLock) gone(t *testing.T) time.Time {
	t.Helper()
	late := time.Now().Add(20 * time.Second)
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
		left := 0
		for _, pid := range s.tree(t) {
			if pid != s.cmd.Process.Pid {
				left++
			}
		}
		switch at := time.Now(); { // by now: looking at all takes a while
		case left == 0:
			tick.Stop()
			return at
		case at.After(late):
			t.Fatalf("%d processes are left", left)
		}
	}
}

// expiry is the end of the scene's lease, by its row or, when it has ended, by its history.
func (s *underLock) expiry(t *testing.T) time.Time {
	t.Helper()
	return one[time.Time](t, s.db, fmt.Sprintf(`
select coalesce((select expires_at from pawl.locks where name = 'x' and token = %[1]d), (select expires_at from pawl.tenures where lock = 'x' and token = %[1]d))`, s.token))
}

// check compares the end of the tree with that of the lease, and lets a successor write.
func (s *underLock) check(t *testing.T, what string, since time.Time) {
	t.Helper()
	successor := start(t, []string{"FILE=" + s.file}, "run", "--lock", "x", "--ttl", "5s", "--wait", "30s", "--database-url", s.db, "--",
		"sh", "-c", `for i in 1 2 3 4 5 6 7 8 9 10; do echo $PAWL_TOKEN >> "$FILE"; sleep 0.01; done`)
	gone := s.gone(t)
	expires := s.expiry(t)
	t.Logf("%s: the tree was gone %v afterwards, %v before the lease's end", what, gone.Sub(since).Round(time.Millisecond), expires.Sub(gone).Round(time.Millisecond))
	if gone.After(expires.Add(100 * time.Millisecond)) {
		t.Errorf("the tree was gone %v after the lease's end", gone.Sub(expires))
	}
	if state := successor.ends(t, 40*time.Second); !state.Success() {
		out, err := successor.said()
		t.Fatalf("successor: %v: %s%s", state, out, err)
	}
	old, after := strconv.FormatInt(s.token, 10), false
	for i, line := range s.lines(t) {
		if line != old {
			after = true
		} else if after {
			t.Fatalf("line %d is the old holder's, after the successor's first", i)
		}
	}
	if !after {
		t.Error("the successor has written nothing")
	}
}

func TestAKilledWrapperTakesTheTreeAlong(t *testing.T) {
	t.Parallel()
	s := newUnderLock(t)
	since := time.Now()
	s.signal(t, syscall.SIGKILL)
	s.check(t, "wrapper killed", since)
}

func TestWithoutItsDatabaseTheTreeEndsBeforeTheLease(t *testing.T) {
	t.Parallel()
	s := newUnderLock(t)
	since := time.Now()
	s.proxy.Set(faults.Hole, 0)
	s.check(t, "database in a black hole", since)
	if code := s.ends(t, 20*time.Second).ExitCode(); code != codeLost {
		t.Errorf("exit code %d", code)
	}
	if _, said := s.said(); !strings.Contains(said, `pawl: lease lost on lock "x" with token `) {
		t.Errorf("it says %q", said)
	}
}

func TestAStoppedWrapperOutlivesItsTree(t *testing.T) {
	t.Parallel()
	s := newUnderLock(t)
	since := time.Now()
	s.signal(t, syscall.SIGSTOP)
	s.check(t, "wrapper stopped", since)
	// It wakes by itself.
	if code := s.ends(t, 20*time.Second).ExitCode(); code != codeLost {
		t.Errorf("exit code %d", code)
	}
}

func TestAKilledGuardianTakesTheTreeAlong(t *testing.T) {
	t.Parallel()
	s := newUnderLock(t)
	guardian, since := s.guardianPid(t), time.Now()
	if err := syscall.Kill(guardian, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.check(t, "guardian killed", since)
	if code := s.ends(t, 20*time.Second).ExitCode(); code != 137 {
		t.Errorf("exit code %d", code)
	}
	if _, said := s.said(); !strings.Contains(said, "pawl: the guardian was killed, and the command with it") {
		t.Errorf("it says %q", said)
	}
}
