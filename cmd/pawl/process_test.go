package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

// process is a pawl of its own, with what it has said.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu       sync.Mutex
	out, err strings.Builder
}

// start runs pawl with a few more environment variables. It ends with the test at the latest.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return startIn(t, "", env, args...)
}

// startIn is start in another directory.
func startIn(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command("pawl", args...), done: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.into(&p.out), p.into(&p.err)
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // its state says how it ended
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// into is a writer that keeps lines under the mutex.
func (p *process) into(b *strings.Builder) io.Writer { return &shared{p, b} }

type shared struct {
	p *process
	b *strings.Builder
}

func (s *shared) Write(b []byte) (int, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.b.Write(b)
}

func (p *process) said() (out, err string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String(), p.err.String()
}

// hears waits until the process has said a phrase, on either stream, and returns the rest of its line.
func (p *process) hears(t *testing.T, timeout time.Duration, phrase string) (rest string) {
	t.Helper()
	found := func() bool {
		out, err := p.said()
		for _, text := range []string{out, err} {
			lines := bufio.NewScanner(strings.NewReader(text))
			for lines.Scan() {
				if _, after, ok := strings.Cut(lines.Text(), phrase); ok {
					rest = after
					return true
				}
			}
		}
		select {
		case <-p.done:
			t.Fatalf("it ended without saying %q: %s%s", phrase, out, err)
		default:
		}
		return false
	}
	pgtest.Eventually(t, timeout, "it says "+phrase, found)
	return rest
}

func (p *process) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// ends waits for the end of the process.
func (p *process) ends(t *testing.T, timeout time.Duration) *os.ProcessState {
	t.Helper()
	pgtest.Eventually(t, timeout, "the process ends", func() bool {
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	})
	return p.cmd.ProcessState
}

// fetch gets a page, or the reason why not.
func fetch(ctx context.Context, url string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), errors.Join(err, resp.Body.Close())
}

// openDir is a directory that the server's user may enter, with a short name.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pawl-demo-") //nolint:usetesting // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
