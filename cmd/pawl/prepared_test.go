package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pawl/fence"
	"pawl/internal/pgdev"
	"pawl/internal/pgtest"
	"pawl/lockrepo"
	"pawl/migrations"
)

// A prepared transaction has no session that could be ended: one that holds a guard keeps everybody out until a person
// ends it, and the doctor is where that person hears of it.
func TestDoctorNamesThePreparedTransactionThatBlocksATakeover(t *testing.T) {
	t.Parallel()
	server, err := pgdev.Start(t.Context(), pgdev.Options{Settings: map[string]string{"max_prepared_transactions": "5"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	pool := pgtest.Open(t, server.URL())
	if _, err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	repo, err := lockrepo.New(lockrepo.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(repo.Close)
	lease, err := repo.Acquire(t.Context(), "x", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	do := func(ctx context.Context, sql string) {
		t.Helper()
		if _, err := pool.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := fence.Guard(t.Context(), tx, lease.Token); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `prepare transaction 'of a transaction manager'`); err != nil {
		t.Fatal(err)
	}
	_ = tx.Rollback(t.Context()) // of nothing: the session is free
	do(t.Context(), `update pawl.locks set expires_at = clock_timestamp() - interval '1 s'`)
	if _, err := repo.Acquire(t.Context(), "x", time.Minute); !errors.Is(err, lockrepo.ErrHeld) {
		t.Errorf("Acquire = %v, want ErrHeld", err)
	}
	_, out, _ := runPawl(t, "doctor", "--json", "--database-url", server.URL())
	for _, want := range []string{"of a transaction manager", "if it holds a guard, nobody can take its lock over", "rollback prepared"} {
		if !strings.Contains(out, want) {
			t.Errorf("the doctor doesn't say %q: %s", want, out)
		}
	}
	do(t.Context(), `rollback prepared 'of a transaction manager'`)
	if _, err := repo.Acquire(t.Context(), "x", time.Minute); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
