package pgtest_test

import (
	"testing"
	"time"

	"pawl/internal/pgtest"
)

func TestEachTestHasAMigratedDatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	a, b := pgtest.New(t), pgtest.New(t)
	if _, err := a.Exec(t.Context(), `delete from pawl.clock`); err != nil {
		t.Fatal(err)
	}
	var inA, inB int
	if err := a.QueryRow(t.Context(), `select count(*) from pawl.clock`).Scan(&inA); err != nil {
		t.Fatal(err)
	}
	if err := b.QueryRow(t.Context(), `select count(*) from pawl.clock`).Scan(&inB); err != nil {
		t.Fatal(err)
	}
	if inA != 0 || inB != 1 {
		t.Errorf("rows in a, b: %d, %d; want 0, 1", inA, inB)
	}
}

func TestCommitTimesAreKept(t *testing.T) {
	t.Parallel()
	var at *time.Time
	const sql = `select pg_xact_commit_timestamp(xmin) from pawl.schema_info`
	if err := pgtest.New(t).QueryRow(t.Context(), sql).Scan(&at); err != nil || at == nil {
		t.Errorf("commit time %v, %v", at, err)
	}
}

func TestAnEmptyDatabaseIsEmpty(t *testing.T) {
	t.Parallel()
	var there bool
	const sql = `select to_regnamespace('pawl') is not null`
	if err := pgtest.Open(t, pgtest.Empty(t)).QueryRow(t.Context(), sql).Scan(&there); err != nil || there {
		t.Errorf("schema pawl there: %t, %v", there, err)
	}
}

func TestThePoolerSharesServerConnectionsByTransaction(t *testing.T) {
	t.Parallel()
	pool := pgtest.Open(t, pgtest.Pooler(t, pgtest.Empty(t)))
	seen := make(map[int]bool)
	for range poolerClients {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		var pid int
		if err := conn.QueryRow(t.Context(), `select pg_backend_pid()`).Scan(&pid); err != nil {
			t.Fatal(err)
		}
		seen[pid] = true
	}
	if len(seen) >= poolerClients {
		t.Errorf("%d clients had %d server connections: that is no pooling by transaction", poolerClients, len(seen))
	}
}

const poolerClients = 8
