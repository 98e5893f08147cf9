package pgtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgdev"
	"pawl/migrations"
)

const template = "pawl_template"

// cluster is the server of this test process and what counts its databases.
type cluster struct {
	server *pgdev.Server
	admin  *pgxpool.Pool
	serial atomic.Int64
}

// shared starts the server once. Nothing stops it but the end of the process,
// which pgdev takes care of.
var shared = sync.OnceValues(func() (*cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := pgdev.Start(ctx, pgdev.Options{Settings: map[string]string{"track_commit_timestamp": "on"}})
	if err != nil {
		return nil, err
	}
	c := &cluster{server: server}
	if err := c.prepare(ctx); err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return c, nil
})

func start(t testing.TB) *cluster {
	t.Helper()
	c, err := shared()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return c
}

func (c *cluster) prepare(ctx context.Context) error {
	config, err := pgxpool.ParseConfig(c.server.URL())
	if err != nil {
		return err
	}
	config.MaxConns = 4
	if c.admin, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	url, err := c.server.Database(ctx, template)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = migrations.Up(ctx, pool)
	return err
}

// database makes a fresh one from another.
func (c *cluster) database(t testing.TB, from string) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", c.serial.Add(1))
	if err := c.exec("create database " + name + " template " + pgx.Identifier{from}.Sanitize()); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := c.exec("drop database " + name + " with (force)"); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return c.server.DatabaseURL(name)
}

// exec has a context of its own: a test's is over when its cleanup runs.
func (c *cluster) exec(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := c.admin.Exec(ctx, sql)
	return err
}
