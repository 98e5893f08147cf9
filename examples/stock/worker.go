package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
	"pawl/lockrepo"
)

const brokenEnv = "STOCK_BROKEN"

// work is a worker process: a shop with many buyers, and a runner that sends the payments.
func work(ctx context.Context, pool *pgxpool.Pool, name string) error {
	holder := name + "/" + strconv.Itoa(os.Getpid())
	repo, err := lockrepo.New(lockrepo.Config{Pool: pool, Holder: holder, TTL: ttl, Grace: ttl}) //nolint:contextcheck // it outlives ctx
	if err != nil {
		return err
	}
	defer repo.Close()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	runner, err := jobs.New(jobs.Config{Pool: pool, Holder: holder, Concurrency: 3, Grace: ttl, NoPrune: true, Logger: log})
	if err != nil {
		return err
	}
	if err := runner.Add(payments(pool)); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	sell := buyers{log, repo, pool, os.Getenv(brokenEnv) != ""}
	for range 3 {
		go sell.loop(ctx)
	}
	return <-ended
}

type buyers struct {
	log    *slog.Logger
	repo   *lockrepo.Repo
	pool   *pgxpool.Pool
	broken bool
}

func (b buyers) loop(ctx context.Context) {
	for ctx.Err() == nil {
		wait(ctx, 20*time.Millisecond)
		order := uuid.New()
		errs := []error{buyUnderLock(ctx, b.repo, b.pool, "last-one")}
		if b.broken {
			errs = append(errs, buyOnSight(ctx, b.pool, order, "shirts"))
		} else {
			_, err := buyOnCondition(ctx, b.pool, order, "shirts")
			errs = append(errs, err)
		}
		errs = append(errs, reserve(ctx, b.pool, uuid.New(), "seats"))
		if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
			b.log.DebugContext(ctx, "buyer", "error", err)
		}
	}
}
