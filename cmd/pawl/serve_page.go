package main

import (
	"context"
	"log/slog"
	"net"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
	"pawl/lockrepo/keys"
	"pawl/web"
)

// The pages' pools are apart from the jobs': work that holds every connection doesn't blind people.
const (
	pageConns = 4 // of those who look
	actConns  = 2 // of those who act
)

// page is what people look at, and what they do there.
type page struct {
	pool  *pgxpool.Pool // reads only, and no statement for longer than two seconds
	acts  *pgxpool.Pool
	locks *lockrepo.Repo
	cfg   web.Config
	log   *slog.Logger
}

func newPage(ctx context.Context, base *pgxpool.Pool, registry *prometheus.Registry, log *slog.Logger) (*page, error) {
	looking := map[string]string{"statement_timeout": "2s", "default_transaction_read_only": "on"}
	pool, err := lockrepo.OwnPool(ctx, base.Config(), "pawl page", pageConns, looking)
	if err != nil {
		return nil, err
	}
	acts, err := lockrepo.OwnPool(ctx, base.Config(), "pawl acts", actConns, nil)
	if err != nil {
		pool.Close()
		return nil, err
	}
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool, Logger: log}) //nolint:contextcheck // heartbeats end with Close
	if err != nil {
		pool.Close()
		acts.Close()
		return nil, err
	}
	history := jobs.NewHistory(pool)
	registry.MustRegister(jobs.NewCollector(history))
	g := &page{pool: pool, acts: acts, locks: locks, log: log}
	g.cfg = web.Config{
		Locks: locks, Jobs: history, Approvals: approvals.New(pool, log), Gatherer: registry, Version: thisBuild().Version,
		Database: base.Config().ConnConfig.Database, Logger: log,
	}
	g.admit(keys.New(acts))
	return g, nil
}

// admit lets in who has a key of the store, and makes keys there.
func (g *page) admit(store *keys.Store) {
	g.cfg.Keys, g.cfg.Acts = store, web.NewActs(jobs.NewOperator(g.acts), approvals.New(g.acts, g.log), store)
}

// adopt refuses a copy that was restored elsewhere.
func (g *page) adopt(ctx context.Context) error {
	locks, err := lockrepo.New(lockrepo.Config{Pool: g.acts, Logger: g.log}) //nolint:contextcheck // heartbeats end with Close
	if err != nil {
		return err
	}
	defer locks.Close()
	return locks.Adopt(ctx, false)
}

func (g *page) serve(ctx context.Context, ln net.Listener) error {
	return web.ServeListener(ctx, ln, web.Handler(g.cfg), g.log)
}

func (g *page) serveHealth(ctx context.Context, ln net.Listener) error {
	return web.ServeListener(ctx, ln, web.HealthHandler(g.cfg), g.log)
}

func (g *page) close() {
	g.locks.Close()
	g.pool.Close()
	g.acts.Close()
}
