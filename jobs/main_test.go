package jobs_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
)

// workerEnv makes the test binary a worker process: it says which, and DATABASE_URL where.
const workerEnv = "PAWL_TEST_WORKER"

// TestMain is also the entry of the worker processes that tests kill and stop.
func TestMain(m *testing.M) {
	if kind := os.Getenv(workerEnv); kind != "" {
		if err := work(kind); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work runs one worker until SIGTERM.
func work(kind string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	r, err := jobs.New(jobs.Config{
		Pool: pool, Concurrency: 4, Grace: time.Second,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	for _, j := range workerJobs(kind, pool) {
		if err := r.Add(j); err != nil {
			return err
		}
	}
	return r.Run(ctx)
}

func workerJobs(kind string, pool *pgxpool.Pool) []jobs.Job {
	if kind == "poison" {
		return []jobs.Job{poison()}
	}
	return ledgers(pool)
}

// worker is a process of this test binary. It dies with the test.
type worker struct{ *exec.Cmd }

func spawn(t testing.TB, kind, url string) *worker {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{Cmd: exec.CommandContext(context.WithoutCancel(t.Context()), self)}
	w.Env = append(os.Environ(), workerEnv+"="+kind, "DATABASE_URL="+url)
	w.Stderr = tail{t}
	dieWithUs(w.Cmd)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.kill)
	return w
}

// kill ends the process at once, stopped or not, and waits for it.
func (w *worker) kill() {
	_ = w.Process.Kill()
	_ = w.Wait()
}

func (w *worker) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := w.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// tail shows a worker's warnings with -v.
type tail struct{ t testing.TB }

func (w tail) Write(p []byte) (int, error) {
	if testing.Verbose() {
		for s := bufio.NewScanner(strings.NewReader(string(p))); s.Scan(); {
			if strings.Contains(s.Text(), "level=WARN") || strings.Contains(s.Text(), "level=ERROR") || !strings.Contains(s.Text(), "level=") {
				fmt.Fprintln(os.Stderr, s.Text())
			}
		}
	}
	return len(p), nil
}
