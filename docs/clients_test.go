package docs_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/lockrepo"
	"pawl/lockrepo/keys"
	"pawl/web"
)

// The clients to copy, and programs that hold the lock named in their argument until they may read a line. They exit with
// 75 when somebody else holds it, and with 76 when they see that they have lost it.
var clients = map[string][]string{
	"lock.py": {"python3", "-c", `
import select, sys
from lock import hold
try:
    with hold(sys.argv[1], 3) as (token, trusted):
        print(token, flush=True)
        while not select.select([sys.stdin], [], [], 0.05)[0]:
            if not trusted(): sys.exit(76)
except BlockingIOError: sys.exit(75)
`},
	"lock.mjs": {"node", "--input-type=module", "-e", `
import { hold } from "./lock.mjs";
try {
  await hold(process.argv[1], async (token, signal) => {
    console.log(token);
    await new Promise((done) => { process.stdin.once("data", done); signal.onabort = done; });
    if (signal.aborted) process.exitCode = 76;
  }, 3);
} catch (e) { if (e.code !== "HELD") throw e; process.exitCode = 75; }
process.stdin.destroy();
`},
	"lock.sh": {"bash", "-c", `exec ./lock.sh "$0" 6 bash -c 'echo "$PAWL_TOKEN"; read -r'`},
}

func TestTheClientsToCopyAreShortAndStandOnTheirPage(t *testing.T) {
	t.Parallel()
	page := read(t, "clients.md")
	for name := range clients {
		text := read(t, filepath.Join("clients", name))
		if n := strings.Count(text, "\n"); n >= 40 {
			t.Errorf("%s has %d lines, want fewer than 40", name, n)
		}
		if !strings.Contains(page, "\n"+text+"```\n") {
			t.Errorf("clients.md doesn't show %s as it is", name)
		}
	}
}

// shop is a server that loses the first reply of each method, and a client of it.
type shop struct {
	name, url, key string
	pool           *pgxpool.Pool
	repo           *lockrepo.Repo
}

func newShop(t *testing.T, client string) *shop {
	t.Helper()
	s := &shop{name: client, pool: pgtest.New(t)}
	var err error
	if s.repo, err = lockrepo.New(lockrepo.Config{Pool: s.pool, TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.repo.Close)
	store := keys.New(s.pool)
	if s.key, _, err = store.Create(t.Context(), keys.Key{Name: "a", Role: keys.Worker, CreatedBy: "test"}); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(forgetful(web.Handler(web.Config{API: s.repo, Keys: store})))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

// forgetful carries the first request of each kind out, and closes its connection instead of answering.
func forgetful(h http.Handler) http.Handler {
	var lost sync.Map
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, before := lost.LoadOrStore(r.Method+filepath.Base(r.URL.Path), true); before {
			h.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
}

// running is a client that is asked to hold a lock.
type running struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.Reader
	errs bytes.Buffer
}

func (s *shop) run(t *testing.T, lock string) *running {
	t.Helper()
	argv := append(slices.Clone(clients[s.name]), lock)
	c := &running{cmd: exec.CommandContext(t.Context(), argv[0], argv[1:]...)}
	c.cmd.Dir, c.cmd.Stderr = "clients", &c.errs
	c.cmd.Env = append(c.cmd.Environ(), "PAWL_URL="+s.url, "PAWL_KEY="+s.key, "PYTHONDONTWRITEBYTECODE=1")
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if c.out, err = c.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// ends waits for the client's end and reports its exit code.
func (c *running) ends(t *testing.T) int {
	t.Helper()
	if _, err := io.Copy(io.Discard, c.out); err != nil {
		t.Error(err)
	}
	_ = c.cmd.Wait() // the code says more
	if c.errs.Len() > 0 {
		t.Logf("%s", c.errs.Bytes())
	}
	return c.cmd.ProcessState.ExitCode()
}

func TestTheClientsToCopyHoldALock(t *testing.T) {
	t.Parallel()
	const lock = `päy ments/"1"/renew`
	for name := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, name)
			c := s.run(t, lock)
			pgtest.Eventually(t, 30*time.Second, "the lease has been renewed for longer than its TTL", func() bool { return s.is(t, "beats >= 4") })
			if code := s.run(t, lock).ends(t); code != 75 {
				t.Errorf("a second one ended with %d, want 75", code)
			}
			if _, err := io.WriteString(c.in, "\n"); err != nil {
				t.Error(err)
			}
			if code := c.ends(t); code != 0 {
				t.Errorf("ended with %d", code)
			}
			past, err := s.repo.History(t.Context(), lock, 0, 0)
			if err != nil || len(past) != 1 || past[0].How != "released" {
				t.Errorf("history %+v, %v; want the one lease, though replies were lost", past, err)
			}
		})
	}
}

func TestTheClientsToCopyStopWhenTheLockIsTakenOver(t *testing.T) {
	t.Parallel()
	for name := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, name)
			c := s.run(t, "x")
			defer func() { _ = c.in.Close() }()
			pgtest.Eventually(t, 30*time.Second, "the lease has been renewed", func() bool { return s.is(t, "beats >= 1") })
			s.expire(t)
			next, err := s.repo.Acquire(t.Context(), "x", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if code := c.ends(t); code != 76 {
				t.Errorf("ended with %d, want 76", code)
			}
			if err := s.repo.Release(context.WithoutCancel(t.Context()), next); err != nil {
				t.Errorf("the successor's lease was ended too: %v", err)
			}
		})
	}
}

// Nobody holds a lock for longer than the server's limit: a renewal is given less than was asked for, and then nothing more.
func TestTheClientsToCopyStopBeforeALeaseThatWasCutEnds(t *testing.T) {
	t.Parallel()
	for name := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, name)
			c := s.run(t, "x")
			defer func() { _ = c.in.Close() }()
			pgtest.Eventually(t, 30*time.Second, "the lease has been renewed", func() bool { return s.is(t, "beats >= 1") })
			if _, err := s.pool.Exec(t.Context(), "update pawl.locks set beats = 0, acquired_at = clock_timestamp() - $1::interval + interval '5 s'", 24*time.Hour); err != nil {
				t.Fatal(err)
			}
			if code := c.ends(t); code != 76 || !s.is(t, "grant_id is null or beats > 0 and expires_at = acquired_at + interval '24 h' and clock_timestamp() < expires_at") {
				t.Errorf("ended with %d, want 76 before the lease did, and after a renewal", code)
			}
		})
	}
}

func (s *shop) is(t *testing.T, fact string) (yes bool) {
	t.Helper()
	if err := s.pool.QueryRow(t.Context(), "select coalesce((select "+fact+" from pawl.locks), false)").Scan(&yes); err != nil {
		t.Fatal(err)
	}
	return yes
}

func (s *shop) expire(t *testing.T) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), "update pawl.locks set expires_at = clock_timestamp()"); err != nil {
		t.Fatal(err)
	}
}
