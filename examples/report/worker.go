package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgdev"
	"pawl/jobs"
)

// A process that finds workerEnv is a worker of that name; the others say for whom.
const (
	workerEnv  = "REPORT_WORKER"
	storeEnv   = "REPORT_STORE"
	firstEnv   = "REPORT_FIRST"
	paceEnv    = "REPORT_PACE"
	variantEnv = "REPORT_VARIANT"
)

// work publishes what is owed until SIGTERM.
func work() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := jobs.NewArtifactDir(os.Getenv(storeEnv))
	if err != nil {
		return err
	}
	defer store.Close() //nolint:errcheck // nothing is written through it any more
	runner, err := jobs.New(jobs.Config{
		Pool: pool, Artifacts: store, Concurrency: 2, Grace: time.Second, NoPrune: true,
		Holder: holder(os.Getenv(workerEnv), os.Getpid()), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	js, err := owed(ctx, pool, store)
	if err != nil {
		return err
	}
	for _, j := range js {
		if err := runner.Add(j); err != nil {
			return err
		}
	}
	return runner.Run(ctx)
}

func owed(ctx context.Context, pool *pgxpool.Pool, store *jobs.ArtifactDir) ([]jobs.Job, error) {
	first, err := time.Parse(time.DateOnly, os.Getenv(firstEnv))
	if err != nil {
		return nil, err
	}
	pace, err := time.ParseDuration(os.Getenv(paceEnv))
	if err != nil {
		return nil, err
	}
	all, err := tenants(ctx, pool)
	if err != nil {
		return nil, err
	}
	r := &reports{pool: pool, publish: fenced, pace: func(ctx context.Context) error { return rest(ctx, pace) }}
	if v := os.Getenv(variantEnv); v != "" {
		r.publish, r.deaf = broken(v, pool, store, os.Getenv(storeEnv)), true
	}
	return r.jobs(all, first), nil
}

// rest is where a worker is most of the time, and so where most of the pauses hit it: in the middle of a file.
func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

func holder(name string, pid int) string { return fmt.Sprintf("%s/%d", name, pid) }

// worker is a worker process, as its parent sees it.
type worker struct {
	*pgdev.Process
	name string
}

func (w *worker) holder() string { return holder(w.name, w.Pid()) }

func (w *worker) signal(s syscall.Signal) error { return syscall.Kill(w.Pid(), s) }

// end kills the process, paused or not, and waits for it.
func (w *worker) end() error { return w.Stop(10*time.Second, syscall.SIGKILL) }

// hire starts a worker of this round: another process of this program.
func (r *round) hire(name string) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+r.url, workerEnv+"="+name, storeEnv+"="+r.dir, firstEnv+"="+r.in.first.Format(time.DateOnly),
		paceEnv+"="+r.pace.String(), variantEnv+"="+r.variant)
	cmd.Stderr = r.log
	p, err := pgdev.Spawn(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, err
	}
	return &worker{p, name}, nil
}
