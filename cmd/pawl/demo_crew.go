package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"pawl/internal/pgdev"
)

// worker is one worker process of the demo.
type worker struct {
	name   string
	proc   *pgdev.Process
	alive  io.Closer // its end is the worker's end, where the kernel doesn't see to that
	output *lastLines
	killed bool
}

// crewSize is how many workers there are.
const crewSize = 3

// hire starts the workers.
func (s *stage) hire() error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("own binary: %w", err)
	}
	for i := range crewSize {
		w := &worker{name: fmt.Sprintf("worker-%d", i+1), output: &lastLines{}}
		if err := w.start(exe, s); err != nil {
			return fmt.Errorf("start %s: %w", w.name, err)
		}
		s.crew = append(s.crew, w)
	}
	s.p.tell("started %d workers: %s", crewSize, s.roster())
	return nil
}

func (w *worker) start(exe string, s *stage) (err error) {
	cmd := exec.Command(exe, "demo-worker", "--name", w.name, "--schedule", s.plan.schedule, "--start", s.plan.start.Format(time.RFC3339),
		"--log-format", "text", "--log-level", "warn")
	cmd.Args[0] = "pawl"
	cmd.Env = append(os.Environ(), "DATABASE_URL="+s.url) // not an argument: it may hold a password
	cmd.Stdout, cmd.Stderr = w.output, w.output
	if w.alive, err = cmd.StdinPipe(); err != nil {
		return err
	}
	w.proc, err = pgdev.Spawn(cmd, syscall.SIGKILL)
	return err
}

func (s *stage) roster() string {
	names := make([]string, 0, len(s.crew))
	for _, w := range s.crew {
		names = append(names, w.holder())
	}
	return strings.Join(names, ", ")
}

// holder is the name under which the worker holds locks.
func (w *worker) holder() string { return holderOf(w.name, w.proc.Pid()) }

func holderOf(name string, pid int) string { return fmt.Sprintf("%s/%d", name, pid) }

func (s *stage) find(holder string) *worker {
	for _, w := range s.crew {
		if w.holder() == holder {
			return w
		}
	}
	return nil
}

func (w *worker) signal(sig syscall.Signal) error {
	if err := syscall.Kill(w.proc.Pid(), sig); err != nil {
		return fmt.Errorf("%s to %s: %w", sig, w.holder(), err)
	}
	return nil
}

// gone says whether the worker has ended though nobody told it to.
func (w *worker) gone() bool {
	select {
	case <-w.proc.Done():
		return !w.killed
	default:
		return false
	}
}

// kill takes the process away without a word, and returns when it is gone.
func (w *worker) kill() error {
	w.killed = true
	if err := w.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-w.proc.Done()
	return nil
}

// dismiss ends all workers: first in good order, then by force.
func (s *stage) dismiss() {
	const patience = 5 * time.Second
	var all sync.WaitGroup
	for _, w := range s.crew {
		all.Go(func() {
			_ = w.signal(syscall.SIGCONT) // one that is stopped hears nothing else
			_ = w.proc.Stop(patience, syscall.SIGTERM, syscall.SIGKILL)
			_ = w.alive.Close()
		})
	}
	all.Wait()
	s.crew = nil
}

// lastLines keeps the end of what a worker has said, to explain its end.
type lastLines struct {
	mu  sync.Mutex
	buf []byte
}

const mostKept = 4096

// Write keeps at most mostKept bytes.
func (l *lastLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, b...)
	if len(l.buf) > mostKept {
		l.buf = l.buf[len(l.buf)-mostKept:]
	}
	return len(b), nil
}

func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(bytes.TrimSpace(l.buf))
}
