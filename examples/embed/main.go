// Command embed is a worker of its own: pawl as a library, in another module.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
	"pawl/migrations"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	check(log, err)
	_, err = migrations.Up(ctx, pool)
	check(log, err)
	runner, err := jobs.New(jobs.Config{Pool: pool, Logger: log})
	check(log, err)
	check(log, runner.Add(jobs.Job{Name: "tick", Schedule: "@every 1s", Func: func(ctx context.Context, run *jobs.Run) error {
		run.Logger().InfoContext(ctx, "tick")
		return nil
	}}))
	check(log, runner.Run(ctx)) // until a signal; then it drains
}

func check(log *slog.Logger, err error) {
	if err != nil {
		log.Error("embed", "error", err)
		os.Exit(1)
	}
}
