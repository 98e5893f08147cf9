package main

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"pawl/lockrepo"
	"pawl/lockrepo/keys"
)

// apiConns is the pool of the lock API. Acquires and releases share statements, so more clients need no more of them.
const apiConns = 16

// api is what serves the lock API: connections of its own, so that neither the jobs nor those who look hold it up.
type api struct {
	pool  *pgxpool.Pool
	locks *lockrepo.Repo
	keys  *keys.Store
}

// newAPI keeps the plans of the few statements that it sends all the time: planning costs more than they do.
func newAPI(ctx context.Context, base *pgxpool.Pool, registry *prometheus.Registry, log *slog.Logger) (*api, error) {
	settings := map[string]string{
		"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "jit": "off",
		"default_transaction_isolation": "read committed", // whatever the role's is
	}
	pool, err := lockrepo.OwnPool(ctx, base.Config(), "pawl api", apiConns, settings)
	if err != nil {
		return nil, err
	}
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool, Logger: log, Registerer: registry}) //nolint:contextcheck // heartbeats end with Close
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &api{pool: pool, locks: locks, keys: keys.New(pool)}, nil
}

func (a *api) close() {
	a.locks.Close()
	a.pool.Close()
}
