package migrations

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// provider takes its connections from own; the function it returns gives
// them back.
func provider(own *pgxpool.Pool) (*goose.Provider, func(), error) {
	sub, err := fs.Sub(files, "sql")
	if err != nil {
		return nil, nil, err
	}
	river, err := riverMigrator(own)
	if err != nil {
		return nil, nil, err
	}
	db := openDB(own)
	p, err := goose.NewProvider(goose.DialectPostgres, db, sub,
		goose.WithTableName(schema+"."+versionTable),
		goose.WithGoMigrations(goose.NewGoMigration(riverNumber, riverUp(river), nil)),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return p, func() { _ = db.Close() }, nil
}

func openDB(own *pgxpool.Pool) *sql.DB {
	db := sql.OpenDB(connector{stdlib.GetPoolConnector(own)})
	db.SetMaxIdleConns(0) // The pool keeps them.
	return db
}

func riverMigrator(pool *pgxpool.Pool) (*rivermigrate.Migrator[pgx.Tx], error) {
	return rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{
		Schema: schema,
		Logger: slog.New(slog.DiscardHandler),
	})
}

// riverUp is not one transaction: River adds an enum's value and uses it, and
// needs a commit in between. Where it breaks off it goes on, by its own
// table of versions.
func riverUp(river *rivermigrate.Migrator[pgx.Tx]) *goose.GoFunc {
	return &goose.GoFunc{RunDB: func(ctx context.Context, _ *sql.DB) error {
		to := &rivermigrate.MigrateOpts{TargetVersion: riverVersion}
		if _, err := river.Migrate(ctx, rivermigrate.DirectionUp, to); err != nil {
			return fmt.Errorf("river: %w", err)
		}
		return nil
	}}
}

// connector bounds every transaction's wait for a lock. It can't be a setting
// of the session: a pooler would hand it on to strangers.
type connector struct{ driver.Connector }

// Connect opens a connection whose transactions don't wait.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn, ok := inner.(*stdlib.Conn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("pgx gave a %T", inner), inner.Close())
	}
	return bounded{conn}, nil
}

type bounded struct{ *stdlib.Conn }

// BeginTx begins and sets the bound.
func (b bounded) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := b.Conn.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	if _, err := b.Conn.Conn().Exec(ctx, "set local lock_timeout = "+lockTimeout); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx, nil
}
