package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/lockrepo"
	"pawl/migrations"
)

const connectTimeout = 10 * time.Second // unless the URL says otherwise

// database is what a command works on.
type database struct {
	pool   *pgxpool.Pool
	pooled bool   // behind a transaction pooler
	server string // its version
}

// url is the connection string; an empty one leaves everything to the PG* variables, which pgx reads.
func (c *cli) url() (string, error) {
	if c.databaseURL != "" {
		return c.databaseURL, nil
	}
	for _, name := range []string{"PGHOST", "PGDATABASE", "PGSERVICE"} {
		if c.getenv(name) != "" {
			return "", nil
		}
	}
	return "", usage("no database is named: give --database-url, or set DATABASE_URL or the PG* variables (PGHOST, PGDATABASE, …); " +
		"to look around without one, run: pawl demo")
}

// open connects with at most conns connections, unless the URL sets pool_max_conns, and finds out what is there.
func (c *cli) open(ctx context.Context, conns int32) (*database, error) {
	url, err := c.url()
	if err != nil {
		return nil, err
	}
	return connect(ctx, url, conns)
}

// openMigrated also demands a schema that this binary may use.
func (c *cli) openMigrated(ctx context.Context, conns int32) (*database, error) {
	db, err := c.open(ctx, conns)
	if err != nil {
		return nil, err
	}
	if err := migrations.Check(ctx, db.pool, migrations.Binary); err != nil {
		db.pool.Close()
		return nil, err
	}
	return db, nil
}

func connect(ctx context.Context, url string, conns int32) (*database, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, badURL(url, err)
	}
	if !strings.Contains(url, "pool_max_conns") {
		cfg.MaxConns = conns
	}
	cc := cfg.ConnConfig
	if cc.ConnectTimeout == 0 {
		cc.ConnectTimeout = connectTimeout
	}
	if cc.RuntimeParams["application_name"] == "" {
		cc.RuntimeParams["application_name"] = "pawl"
	}
	db := &database{}
	if db.server, err = greet(ctx, cc); err != nil {
		return nil, err
	}
	if db.pooled, err = lockrepo.IsPooled(ctx, cc); err != nil {
		return nil, explain(err, cc)
	}
	if db.pooled {
		withoutPreparing(cc)
	}
	if db.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, explain(err, cc)
	}
	return db, nil
}

// withoutPreparing leaves a mode alone that a pooler doesn't break.
func withoutPreparing(cc *pgx.ConnConfig) {
	switch cc.DefaultQueryExecMode {
	case pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec:
		cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	default:
	}
}

// greet connects once, so that a wrong word in the URL is one sentence and nothing is begun.
func greet(ctx context.Context, cc *pgx.ConnConfig) (server string, err error) {
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return "", explain(err, cc)
	}
	server = conn.PgConn().ParameterStatus("server_version")
	_ = conn.Close(context.WithoutCancel(ctx)) // it has said what it had to
	if migrations.CheckServer(server) != nil {
		return "", usage("the server at %s is PostgreSQL %s: pawl needs %d or newer", where(cc), server, migrations.OldestServer)
	}
	return server, nil
}

// where is the server's address, or all of them.
func where(cc *pgx.ConnConfig) string {
	names := []string{address(cc.Host, cc.Port)}
	for _, f := range cc.Fallbacks {
		if name := address(f.Host, f.Port); name != names[len(names)-1] {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func address(host string, port uint16) string {
	if strings.HasPrefix(host, "/") {
		return host
	}
	return fmt.Sprintf("%s:%d", host, port)
}

// last is the innermost error: those around it repeat the connection string.
func last(err error) string {
	for {
		switch e := err.(type) { //nolint:errorlint // it walks the chain itself
		case interface{ Unwrap() error }:
			if e.Unwrap() == nil {
				return err.Error()
			}
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			all := e.Unwrap()
			if len(all) == 0 {
				return err.Error()
			}
			err = all[len(all)-1]
		default:
			return err.Error()
		}
	}
}

func withoutSecret(s string, cc *pgx.ConnConfig) string {
	if cc.Password != "" {
		s = strings.ReplaceAll(s, cc.Password, "xxxxx")
	}
	return mask(s)
}
