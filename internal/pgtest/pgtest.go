package pgtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgdev"
)

// poolSize bounds each test's pool: the server has 200 connections for all.
const poolSize = 10

// New returns a pool of at most ten connections on a fresh, migrated
// database. When the test ends the pool is closed and the database dropped; a
// connection that the test hasn't given back by then is an error.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Open(t, URL(t))
}

// URL returns the connection string of a fresh, migrated database, dropped
// when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	return start(t).database(t, template)
}

// Empty returns the connection string of a fresh database with nothing in it,
// dropped when the test ends.
func Empty(t testing.TB) string {
	t.Helper()
	return start(t).database(t, "template0")
}

// Server returns the server of this test process. It keeps the time of each
// commit (track_commit_timestamp) and nothing on disk.
func Server(t testing.TB) *pgdev.Server {
	t.Helper()
	return start(t).server
}

// Open returns a pool for a connection string, closed when the test ends. It
// has at most ten connections unless the string sets pool_max_conns.
func Open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if !strings.Contains(url, "pool_max_conns=") {
		config.MaxConns = poolSize
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() { closePool(t, pool) })
	return pool
}

// closePool doesn't wait for ever for a connection that the test has leaked.
func closePool(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	select {
	case <-closed:
	case <-ctx.Done():
		t.Errorf("pgtest: %d connections were not given back to the pool", pool.Stat().AcquiredConns())
	}
}
