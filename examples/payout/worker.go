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

// A process that finds workerEnv is a worker, and these say the rest.
const (
	workerEnv   = "PAYOUT_WORKER"
	providerEnv = "PAYOUT_PROVIDER"
	startEnv    = "PAYOUT_START"
	brokenEnv   = "PAYOUT_BROKEN"
)

// work is a worker process's life.
func work(name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	start, err := time.Parse(time.RFC3339, os.Getenv(startEnv))
	if err != nil {
		return err
	}
	p := &payout{pool: pool, url: os.Getenv(providerEnv), broken: os.Getenv(brokenEnv) != ""}
	check, err := p.check()
	if err != nil {
		return err
	}
	runner, err := jobs.New(jobs.Config{
		Pool: pool, Holder: holderOf(name, os.Getpid()), Concurrency: 2, Grace: time.Second, NoPrune: true,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	for _, j := range []jobs.Job{p.job(start), check} {
		if err := runner.Add(j); err != nil {
			return err
		}
	}
	return runner.Run(ctx)
}

func holderOf(name string, pid int) string { return fmt.Sprintf("%s/%d", name, pid) }

// worker is one of the crew.
type worker struct {
	name string
	env  []string
	proc *pgdev.Process
}

func (w *worker) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), w.env...), workerEnv+"="+w.name)
	cmd.Stderr = os.Stderr
	w.proc, err = pgdev.Spawn(cmd, syscall.SIGKILL)
	return err
}

func (w *worker) holder() string { return holderOf(w.name, w.proc.Pid()) }

func (w *worker) signal(s syscall.Signal) error { return syscall.Kill(w.proc.Pid(), s) }

// kill takes the process away without a word, stopped or not.
func (w *worker) kill() error { return w.proc.Stop(10*time.Second, syscall.SIGKILL) }
