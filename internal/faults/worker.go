package faults

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgdev"
	"pawl/internal/wall"
	"pawl/jobs"
)

// A test binary that finds workerEnv is a worker process: it says which, and DATABASE_URL where.
const workerEnv = "PAWL_TEST_WORKER"

// Kinds are the workers that a test binary can be: the jobs of each.
type Kinds map[string]func(context.Context, *pgxpool.Pool) ([]jobs.Job, error)

// Main is what TestMain calls: it runs a worker until SIGTERM if this process was spawned as one, else it runs the tests.
// It returns the process's exit code.
func Main(m *testing.M, kinds Kinds) int {
	kind := os.Getenv(workerEnv)
	if kind == "" {
		return m.Run()
	}
	if err := work(kinds[kind]); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	return 0
}

// ConcurrencyEnv says how many runs a worker has at a time; 4 if it isn't set.
const ConcurrencyEnv = "PAWL_TEST_CONCURRENCY"

func concurrency() int {
	if n, err := strconv.Atoi(os.Getenv(ConcurrencyEnv)); err == nil {
		return n
	}
	return 4
}

func work(its func(context.Context, *pgxpool.Pool) ([]jobs.Job, error)) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go shiftClock()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	r, err := jobs.New(jobs.Config{
		Pool: pool, Concurrency: concurrency(), Grace: time.Second,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	js, err := its(ctx, pool)
	if err != nil {
		return err
	}
	for _, j := range js {
		if err := r.Add(j); err != nil {
			return err
		}
	}
	return r.Run(ctx)
}

// Leap is by how much the signals forward and back set a worker's clock.
const (
	Leap    = 10 * time.Minute
	forward = syscall.SIGUSR1
	back    = syscall.SIGUSR2
)

func shiftClock() {
	c := make(chan os.Signal, 8)
	signal.Notify(c, forward, back)
	for s := range c {
		if s == forward {
			wall.Shift(Leap)
		} else {
			wall.Shift(-Leap)
		}
	}
}

// Process is a worker, a process of this test binary.
type Process struct{ *pgdev.Process }

// Spawn starts a worker of a kind that [Main] knows. It ends with the test.
func Spawn(t testing.TB, kind, url string) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerEnv+"="+kind, "DATABASE_URL="+url)
	cmd.Stderr = tail{}
	p, err := pgdev.Spawn(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	w := &Process{p}
	t.Cleanup(func() { w.Kill(t) })
	return w
}

// Kill ends the process at once, stopped or not, and waits for it.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	if err := p.Stop(10*time.Second, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// Signal sends a signal.
func (p *Process) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.Pid(), s); err != nil {
		t.Error(err)
	}
}

// tail shows a worker's warnings with -v.
type tail struct{}

func (tail) Write(p []byte) (int, error) {
	if testing.Verbose() {
		for line := range strings.Lines(string(p)) {
			if !strings.Contains(line, "level=INFO") && !strings.Contains(line, "level=DEBUG") {
				_, _ = os.Stderr.WriteString(line)
			}
		}
	}
	return len(p), nil
}
