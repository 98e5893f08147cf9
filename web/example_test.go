package web_test

import (
	"context"
	"log"
	"net/http"
	"os"
	"os/signal"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/web"
)

// watch is everything below /pawl/: the page, its JSON, /pawl/healthz, /pawl/readyz and /pawl/metrics.
func watch(pool *pgxpool.Pool, locks *lockrepo.Repo, runner *jobs.Runner, registry *prometheus.Registry) http.Handler {
	history := jobs.NewHistory(pool)
	registry.MustRegister(jobs.NewCollector(history)) // what stands in the database; the runner counts what it does
	return web.Handler(web.Config{
		Locks: locks, Jobs: history, Gatherer: registry, BasePath: "/pawl",
		Ready: func(context.Context) error { return runner.Ready() },
	})
}

// A program of your own that works and shows the page beside what it serves already.
func ExampleHandler() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	must(err)
	defer pool.Close()
	registry := prometheus.NewRegistry()
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool, Registerer: registry})
	must(err)
	defer locks.Close()
	runner, err := jobs.New(jobs.Config{Pool: pool, Registerer: registry})
	must(err)
	must(runner.Add(jobs.Job{Name: "tick", Schedule: "@every 1m", Func: func(context.Context, *jobs.Run) error { return nil }}))

	mux := http.NewServeMux()
	mux.Handle("/pawl/", watch(pool, locks, runner, registry))
	go func() { must(web.Serve(ctx, "127.0.0.1:8080", mux, nil)) }()
	must(runner.Run(ctx)) // until ^C
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
