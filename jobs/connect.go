package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/gather"
	"pawl/lockrepo"
)

const (
	ownConns    = 8 // pawl's own connections, apart from Config.Pool and the heartbeats' two
	directConns = 5 // River's and the listener's
)

// open opens what the runner needs of the database. Polling: nothing that can be listened on.
func (r *Runner) open(ctx context.Context) (polling bool, err error) {
	defer func() {
		if err != nil {
			r.closePools()
			err = fmt.Errorf("jobs: %w", err)
		}
	}()
	// Planning dominates single starts unless the plan is kept; and a plan that was made while a table was small must
	// not go on scanning the whole of it.
	settings := map[string]string{
		"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "jit": "off",
		"default_transaction_isolation": "read committed", // whatever the role's is
	}
	if r.pooled, err = pooled(ctx, r.cfg.Pool.Config()); err != nil {
		return false, err
	}
	if r.pool, err = lockrepo.OwnPool(ctx, r.cfg.Pool.Config(), "pawl "+r.cfg.App, ownConns, settings); err != nil {
		return false, err
	}
	if err := r.refusePreparing(); err != nil {
		return false, err
	}
	if r.direct, err = r.openDirect(ctx); err != nil {
		return false, err
	}
	if polling = r.pooled; r.cfg.Direct != nil {
		if polling, err = pooled(ctx, r.direct.Config()); err != nil {
			return false, err
		}
	}
	r.repo, err = lockrepo.New(lockrepo.Config{ //nolint:contextcheck // its heartbeats outlive this call
		Pool: r.pool, Holder: r.cfg.Holder, Grace: r.cfg.Grace, Logger: r.log, Registerer: r.cfg.Registerer,
	})
	if err != nil {
		return false, err
	}
	r.starts = gather.New(executors, mostBatch, r.start)
	r.ends = gather.New(executors, mostBatch, r.end)
	r.handovers = gather.New(executors, mostBatch, r.handover)
	return polling, nil
}

// refusePreparing refuses a pool whose prepared statements would fail now and then, in the middle of a run.
func (r *Runner) refusePreparing() error {
	if !r.pooled || r.cfg.Pool.Config().ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		return nil
	}
	return &ConfigError{
		Field: "Pool", Value: "default_query_exec_mode=cache_statement",
		Fix: "a transaction pooler breaks prepared statements: add default_query_exec_mode=exec to its URL",
	}
}

// sameSQL tells one database of one server from every other.
const sameSQL = `select current_database() || ' ' || extract(epoch from pg_postmaster_start_time())`

// openDirect opens River's and the listener's connections, without the settings that only pawl's own statements bear. A way
// past a pooler must lead to the same database: or deliveries of another one would be worked.
func (r *Runner) openDirect(ctx context.Context) (*pgxpool.Pool, error) {
	direct, err := lockrepo.OwnPool(ctx, cmp.Or(r.cfg.Direct, r.cfg.Pool).Config(), "pawl "+r.cfg.App+" river", directConns, nil)
	if err != nil || r.cfg.Direct == nil {
		return direct, err
	}
	var here, there string
	err = r.pool.QueryRow(ctx, sameSQL).Scan(&here)
	if err == nil {
		err = direct.QueryRow(ctx, sameSQL).Scan(&there)
	}
	if err == nil && here != there {
		err = errors.New("the direct URL leads to another database than the database URL: give the same one, past the pooler")
	}
	if err != nil {
		direct.Close()
		return nil, err
	}
	return direct, nil
}

// pooled asks as the pool would connect: BeforeConnect may read the password again.
func pooled(ctx context.Context, cfg *pgxpool.Config) (bool, error) {
	one := cfg.ConnConfig.Copy()
	if cfg.BeforeConnect != nil {
		if err := cfg.BeforeConnect(ctx, one); err != nil {
			return false, fmt.Errorf("before connect: %w", err)
		}
	}
	return lockrepo.IsPooled(ctx, one)
}

func (r *Runner) shut() {
	r.starts.Close()
	r.ends.Close()
	r.handovers.Close()
	r.repo.Close()
	r.closePools()
}

func (r *Runner) closePools() {
	if r.direct != nil {
		r.direct.Close()
	}
	if r.pool != nil {
		r.pool.Close()
	}
}
