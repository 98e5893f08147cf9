package pgdev

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const ownerEnv = "PAWL_PGDEV_TEST_OWNER"

// TestMain lets the test binary play the owner of a server: it starts one,
// says where, and ends without a Stop.
func TestMain(m *testing.M) {
	dir, isOwner := os.LookupEnv(ownerEnv)
	if !isOwner {
		os.Exit(m.Run())
	}
	s, err := Start(context.Background(), Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.Pid(), s.home.dir, s.SocketDir())
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// owner is a process of its own that owns a server.
type owner struct {
	cmd         *exec.Cmd
	stdin       io.Closer
	postmaster  int
	dir, socket string
}

func startOwner(t *testing.T, dir string) *owner {
	t.Helper()
	o := &owner{cmd: exec.Command(os.Args[0])}
	o.cmd.Env = append(os.Environ(), ownerEnv+"="+dir)
	stdin, errIn := o.cmd.StdinPipe()
	stdout, errOut := o.cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, o.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	o.stdin = stdin
	t.Cleanup(func() { _ = o.cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(line, &o.postmaster, &o.dir, &o.socket); err != nil {
		t.Fatalf("owner says %q: %v", line, err)
	}
	return o
}

func eventually(t *testing.T, what string, fact func() bool) {
	t.Helper()
	tick, late := time.NewTicker(10*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for !fact() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("after 20s still not true: %s", what)
		}
	}
}

func ended(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// Not parallel: another test's Start would reap what the watchdog should.
func TestNothingIsLeftWhenTheOwnerIsKilled(t *testing.T) {
	o := startOwner(t, "")
	if err := o.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = o.cmd.Wait()
	eventually(t, "the server has ended", func() bool { return ended(o.postmaster) })
	eventually(t, "the directory is gone", func() bool { return gone(o.dir) })
}

// Not parallel: another test's Start would reap what the watchdog should.
func TestNothingIsLeftWhenTheOwnerExitsWithoutStop(t *testing.T) {
	o := startOwner(t, "")
	_ = o.stdin.Close()
	if err := o.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server has ended", func() bool { return ended(o.postmaster) })
	eventually(t, "the directory is gone", func() bool { return gone(o.dir) })
}

func TestTheNextStartReapsWhatAKilledWatchdogLeft(t *testing.T) {
	t.Parallel()
	o := startOwner(t, "")
	eventually(t, "the watchdog is killed", func() bool { return killWatchdog(o.dir) })
	_ = o.cmd.Process.Kill()
	_ = o.cmd.Wait()
	eventually(t, "the server has ended", func() bool { return ended(o.postmaster) })
	if gone(o.dir) {
		t.Fatal("the directory is gone already: this test proves nothing")
	}
	reap(t.Context())
	if !gone(o.dir) {
		t.Error("the directory is still there")
	}
}

// killWatchdog finds it by its arguments, which name the directory.
func killWatchdog(dir string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		args, _ := os.ReadFile(file)
		if strings.Contains(string(args), "pawl-pg-watchdog\x00"+dir+"/data\x00") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	return false
}

func TestAKeptDirectoryIsUsableAtOnceAfterItsOwnerWasKilled(t *testing.T) {
	t.Parallel()
	dir := kept(t)
	o := startOwner(t, dir)
	execSQL(t, urlOf(o), "create table kept ()")
	_ = o.cmd.Process.Kill()
	_ = o.cmd.Wait()
	s := start(t, Options{Dir: dir})
	if n := query[int](t, s.URL(), "select count(*) from pg_class where relname = 'kept'"); n != 1 {
		t.Error("the table is lost")
	}
}

func TestADirectoryHasOneOwner(t *testing.T) {
	t.Parallel()
	dir := kept(t)
	start(t, Options{Dir: dir})
	_, err := Start(t.Context(), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "in use by another server") {
		t.Errorf("second start says %v", err)
	}
}

func urlOf(o *owner) string {
	return (&Server{home: &home{socket: o.socket}}).URL()
}
