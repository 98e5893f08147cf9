package lockrepo

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connectTimeout bounds one attempt to connect: a host that swallows packets
// must not hold a connection's place for minutes.
const connectTimeout = 10 * time.Second

// OwnPool opens a pool beside base: the same server and account, but at most
// conns connections that call themselves application and have settings, such
// as plan_cache_mode. Behind a pooler it sends no settings, since they would
// stay behind for other clients, and prepares no statements. A connection that
// turns out to be read-only (25006: its server was demoted) is closed. The
// caller closes the pool.
func OwnPool(ctx context.Context, base *pgxpool.Config, application string, conns int32, settings map[string]string) (*pgxpool.Pool, error) {
	cfg := base.Copy()
	cc, err := connConfig(ctx, base)
	if err != nil {
		return nil, err
	}
	pooled, err := IsPooled(ctx, cc)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = conns, 0, 0
	adapt(cfg.ConnConfig, pooled, application, settings)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("lockrepo: open pool: %w", err)
	}
	return pool, nil
}

// connConfig is what a pool of cfg would connect with now: BeforeConnect may
// read the password again.
func connConfig(ctx context.Context, cfg *pgxpool.Config) (*pgx.ConnConfig, error) {
	cc := cfg.ConnConfig.Copy()
	if cfg.BeforeConnect != nil {
		if err := cfg.BeforeConnect(ctx, cc); err != nil {
			return nil, fmt.Errorf("lockrepo: before connect: %w", err)
		}
	}
	return cc, nil
}

// adapt makes cc fit for connections of our own.
func adapt(cc *pgx.ConnConfig, pooled bool, application string, settings map[string]string) {
	if cc.ConnectTimeout <= 0 || cc.ConnectTimeout > connectTimeout {
		cc.ConnectTimeout = connectTimeout
	}
	closeReadOnly(&cc.Config)
	if pooled {
		withoutPreparing(cc)
		return
	}
	cc.RuntimeParams["application_name"] = application
	maps.Copy(cc.RuntimeParams, settings)
	if settings["default_transaction_read_only"] == "on" && cc.ValidateConnect != nil {
		// target_session_attrs=read-write would take our own setting for that of a standby.
		cc.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
}

// withoutPreparing changes a mode that a transaction pooler would break.
func withoutPreparing(cc *pgx.ConnConfig) {
	switch cc.DefaultQueryExecMode {
	case pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
	default:
		cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
}

// closeReadOnly gives up a connection whose server has been demoted.
func closeReadOnly(cfg *pgconn.Config) {
	keep := cfg.OnPgError
	cfg.OnPgError = func(c *pgconn.PgConn, err *pgconn.PgError) bool {
		return err.Code != "25006" && (keep == nil || keep(c, err))
	}
}

// IsPooled reports whether a transaction pooler such as pgbouncer stands
// between cfg and Postgres. It connects once.
func IsPooled(ctx context.Context, cfg *pgx.ConnConfig) (bool, error) {
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return false, fmt.Errorf("lockrepo: connect: %w", err)
	}
	defer closeConn(ctx, c)
	return pooled(ctx, c)
}

// pooled compares the process id that the connection was greeted with to that
// of the server: a pooler makes up its own.
func pooled(ctx context.Context, c *pgx.Conn) (bool, error) {
	var pid uint32
	if err := c.QueryRow(ctx, "select pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid); err != nil {
		return false, fmt.Errorf("lockrepo: ask for the backend: %w", err)
	}
	return pid != c.PgConn().PID(), nil
}
