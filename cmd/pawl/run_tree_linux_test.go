package main

import (
	"crypto/rand"
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

func TestAStoppedGuardianDoesNotOutliveTheLease(t *testing.T) {
	t.Parallel()
	s := newUnderLock(t)
	guardian, since := s.guardianPid(t), time.Now()
	if err := syscall.Kill(guardian, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.proxy.Set(faults.Hole, 0)
	s.check(t, "guardian stopped, database in a black hole", since)
}

// A server that lets nobody hold a lock for long gives a renewal less than the one before had: the guardian ends the tree by
// that, though the wrapper has been stopped since.
func TestAStoppedWrapperOutlivesItsTreeByALeaseThatWasCut(t *testing.T) {
	t.Parallel()
	s := &underLock{db: pgtest.URL(t), file: filepath.Join(t.TempDir(), "file"), value: rand.Text()}
	_, url := serveAPI(t, s.db, "--max-hold", "1h")
	s.process = start(t, s.env(), "run", "--server", url, "--lock", "x", "--ttl", "9s", "--", "sh", "-c", appends)
	pgtest.Eventually(t, 20*time.Second, "it writes", func() bool { return len(s.lines(t)) > 10 })
	s.token = one[int64](t, s.db, `update pawl.locks set acquired_at = clock_timestamp() - interval '1 h' + interval '6 s' where name = 'x' returning token`)
	const cut = `select count(*) = 1 from pawl.locks where name = 'x' and beats > 0 and expires_at = acquired_at + interval '1 h' and renewed_at < clock_timestamp() - interval '500 ms'`
	pgtest.Eventually(t, 20*time.Second, "a renewal was cut, and the guardian told", func() bool { return one[bool](t, s.db, cut) })
	since := time.Now()
	s.signal(t, syscall.SIGSTOP)
	s.check(t, "wrapper stopped", since)
	if code := s.ends(t, 20*time.Second).ExitCode(); code != codeLost {
		t.Errorf("exit code %d", code)
	}
}

// The end of a lease that is taken away isn't waited for: the next beat tells, and KILL follows.
func TestALeaseThatIsTakenAwayEndsItsCommandAtOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	if code, _, said := runPawl(t, "approval", "single-operator", "on", "--database-url", db); code != codeOK {
		t.Fatalf("exit code %d: %s", code, said)
	}
	p := start(t, nil, "run", "--lock", "x", "--ttl", "9s", "--database-url", db, "--", "sh", "-c",
		"trap '' TERM; echo ready $PAWL_TOKEN; while :; do sleep 0.01; done")
	seq := strings.TrimSpace(p.hears(t, 20*time.Second, "ready"))
	expires := one[time.Time](t, db, `select expires_at from pawl.locks`)
	if code, _, said := runPawl(t, "lock", "release", "x", "--token", seq, "--reason", "a test of it", "--database-url", db); code != codeOK {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if code := p.ends(t, 20*time.Second).ExitCode(); code != codeLost {
		t.Errorf("exit code %d", code)
	}
	if left := time.Until(expires); left < 3*time.Second {
		t.Errorf("it ended %v before the lease would have", left)
	}
	if _, said := p.said(); !strings.Contains(said, "it was released by force") {
		t.Errorf("it says %q", said)
	}
}

// A healthy lease is renewed for as long as the command runs, and the lock goes on with its end.
func TestALeaseLastsAsLongAsItsCommand(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	p := start(t, nil, "run", "--lock", "x", "--ttl", "3s", "--database-url", db, "--", "sleep", "7")
	if state := p.ends(t, 20*time.Second); !state.Success() {
		_, said := p.said()
		t.Fatalf("%v: %s", state, said)
	}
	if how := one[string](t, db, `select how || (beats > 3) || (ended_at - acquired_at > interval '6.9 s') from pawl.tenures`); how != "releasedtruetrue" {
		t.Errorf("it ended as %s", how)
	}
}

func TestSignalsAreTheCommands(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	for _, c := range []struct {
		sig  syscall.Signal
		code int
	}{
		{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}, {syscall.SIGQUIT, 131}, {syscall.SIGUSR1, 138}, {syscall.SIGUSR2, 140},
	} {
		lock := strconv.Itoa(int(c.sig))
		p := start(t, nil, "run", "--lock", lock, "--database-url", db, "--", "sh", "-c", "echo ready; exec sleep 1000")
		p.hears(t, 20*time.Second, "ready")
		p.signal(t, c.sig)
		if code := p.ends(t, 20*time.Second).ExitCode(); code != c.code {
			t.Errorf("%v: exit code %d, want %d", c.sig, code, c.code)
		}
		if how := one[string](t, db, `select coalesce((select how from pawl.tenures where lock = '`+lock+`'), 'held')`); how != "released" {
			t.Errorf("%v: the lease is %s", c.sig, how)
		}
	}
	// One that the command handles is its own affair, twice too.
	p := start(t, nil, "run", "--lock", "x", "--database-url", db, "--", "sh", "-c",
		`n=0; trap 'n=$((n+1)); echo heard $n; test $n = 2 && exit 6' INT; echo ready; while :; do sleep 0.01; done`)
	p.hears(t, 20*time.Second, "ready")
	p.signal(t, syscall.SIGINT)
	p.hears(t, 20*time.Second, "heard 1")
	p.signal(t, syscall.SIGINT)
	if code := p.ends(t, 20*time.Second).ExitCode(); code != 6 {
		t.Errorf("exit code %d, want the command's own", code)
	}
}

func TestASuspendedCommandKeepsItsLeaseAndGoesOn(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	file := filepath.Join(t.TempDir(), "file")
	p := start(t, []string{"FILE=" + file}, "run", "--lock", "x", "--ttl", "3s", "--database-url", db, "--", "sh", "-c",
		`echo ready; while :; do echo x >> "$FILE"; sleep 0.01; done`)
	p.hears(t, 20*time.Second, "ready")
	p.signal(t, syscall.SIGTSTP)
	p.hears(t, 20*time.Second, "pawl: the command is suspended")
	size := func() int64 {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	var last int64
	pgtest.Eventually(t, 20*time.Second, "it writes no more", func() bool { s := size(); same := s == last; last = s; return same })
	beats := one[int](t, db, `select beats from pawl.locks`)
	pgtest.Eventually(t, 20*time.Second, "the lease is renewed on and on", func() bool { return one[int](t, db, `select beats from pawl.locks`) > beats+3 })
	last = size()
	p.signal(t, syscall.SIGCONT)
	pgtest.Eventually(t, 20*time.Second, "it goes on", func() bool { return size() > last })
	p.signal(t, syscall.SIGTSTP)
	p.signal(t, syscall.SIGTERM) // who is suspended hears it all the same
	if code := p.ends(t, 20*time.Second).ExitCode(); code != 143 {
		t.Errorf("exit code %d", code)
	}
}

func TestASignalEndsTheWaitForTheLock(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	first := start(t, nil, "run", "--lock", "x", "--database-url", db, "--", "sh", "-c", "echo ready; sleep 1000")
	first.hears(t, 20*time.Second, "ready")
	p := start(t, nil, "run", "--lock", "x", "--wait", "1h", "--database-url", db, "--", "echo", "ran")
	p.hears(t, 20*time.Second, "waiting for 1h 00m at most")
	p.signal(t, syscall.SIGTERM)
	if code := p.ends(t, 5*time.Second).ExitCode(); code != 143 {
		t.Errorf("exit code %d", code)
	}
	if out, _ := p.said(); out != "" {
		t.Errorf("it ran: %q", out)
	}
}

// The same over HTTP, with a key from a file; the server goes away for good.
func TestOverHTTPTooTheTreeEndsBeforeTheLease(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	bearer := makeKey(t, db, "--name", "runner", "--role", "worker")
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(bearer+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server, url := serveAPI(t, db)
	env := []string{"PAWL_SERVER=" + url, "PAWL_KEY_FILE=" + keyFile}
	p := start(t, env, "run", "--lock", "ok", "--ttl", "3s", "--", "sh", "-c", `sleep 5; echo "$PAWL_LOCK $PAWL_TTL"; exit 8`)
	if code := p.ends(t, 20*time.Second).ExitCode(); code != 8 {
		_, said := p.said()
		t.Fatalf("exit code %d: %s", code, said)
	}
	if out, _ := p.said(); out != "ok 3s\n" {
		t.Errorf("%q", out)
	}
	p = start(t, env, "run", "--lock", "x", "--ttl", "3s", "--", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.01; done")
	p.hears(t, 20*time.Second, "ready")
	busy := start(t, env, "run", "--lock", "x", "--", "true")
	if code := busy.ends(t, 20*time.Second).ExitCode(); code != codeHeld {
		t.Errorf("exit code %d, want that of a held lock", code)
	}
	server.signal(t, syscall.SIGKILL)
	if code := p.ends(t, 20*time.Second).ExitCode(); code != codeLost {
		t.Errorf("exit code %d", code)
	}
	if left := one[bool](t, db, `select expires_at > clock_timestamp() - interval '1 s' from pawl.locks where name = 'x'`); !left {
		t.Error("it ended long after its lease") // the wrapper tries to release for a second
	}
	away := start(t, env, "run", "--lock", "x", "--", "true")
	if code := away.ends(t, 60*time.Second).ExitCode(); code != codeUnreachable {
		t.Errorf("exit code %d, want that of a server that is away", code)
	}
}
