package migrations_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/migrations"
)

const turnHolder = `select coalesce(min(pid), 0) from pg_locks where locktype = 'advisory' and granted
   and database = (select oid from pg_database where datname = current_database())`

func TestTheTurnOutlivesTheServersTimeouts(t *testing.T) {
	t.Parallel()
	pool := pgtest.Open(t, pgtest.Empty(t)+"&idle_in_transaction_session_timeout=50&statement_timeout=60000")
	err := migrations.Alone(t.Context(), pool, func(ctx context.Context, own *pgxpool.Pool) error {
		// real clock: the server's own timeout of 50 ms must have its chance.
		late := time.NewTimer(300 * time.Millisecond)
		defer late.Stop()
		<-late.C
		var pid int
		if err := own.QueryRow(ctx, turnHolder).Scan(&pid); err != nil {
			return err
		}
		if pid == 0 {
			return errors.New("the server has ended the turn")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWorkEndsWhenTheTurnIsLost(t *testing.T) {
	t.Parallel()
	pool := pgtest.Open(t, pgtest.Empty(t))
	err := migrations.Alone(t.Context(), pool, func(ctx context.Context, own *pgxpool.Pool) error {
		var pid int
		if err := own.QueryRow(ctx, turnHolder).Scan(&pid); err != nil {
			return err
		}
		if _, err := own.Exec(ctx, `select pg_terminate_backend($1)`, pid); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if err == nil || !strings.Contains(err.Error(), "lost the turn to migrate") {
		t.Errorf("alone says %v", err)
	}
}

func TestTheTurnIsGivenBackAfterAnError(t *testing.T) {
	t.Parallel()
	pool := pgtest.Open(t, pgtest.Empty(t))
	boom := errors.New("boom")
	for range 2 {
		err := migrations.Alone(t.Context(), pool, func(context.Context, *pgxpool.Pool) error { return boom })
		if !errors.Is(err, boom) {
			t.Fatal(err)
		}
	}
}

func TestRiversVersionIsPinnedToTheNewest(t *testing.T) {
	t.Parallel()
	river, err := migrations.RiverMigrator(nil)
	if err != nil {
		t.Fatal(err)
	}
	all := river.AllVersions()
	if newest := all[len(all)-1].Version; newest != migrations.RiverVersion {
		t.Errorf("River is at %d, we stop at %d: add a migration with a new number that goes there", newest, migrations.RiverVersion)
	}
}

func TestAMigrationsTransactionWaitsOnlyBriefly(t *testing.T) {
	t.Parallel()
	db := migrations.OpenDB(pgtest.Open(t, pgtest.Empty(t)+"&pool_max_conns=1"))
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var inside, after string
	if err := tx.QueryRowContext(t.Context(), `show lock_timeout`).Scan(&inside); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRowContext(t.Context(), `show lock_timeout`).Scan(&after); err != nil {
		t.Fatal(err)
	}
	if inside != "200ms" || after != "0" {
		t.Errorf("lock_timeout inside %s, after %s", inside, after)
	}
}
