package fence_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// A service that only honours tokens gets a role that can run these functions and see nothing.
func TestTheFencerRoleCanDoAllThatFenceNeeds(t *testing.T) {
	t.Parallel()
	admin := pgtest.New(t)
	rows := ledger(t, admin)
	roles, err := os.ReadFile("../migrations/roles.sql")
	if err != nil {
		t.Fatal(err)
	}
	exec(t, admin, string(roles))
	exec(t, admin, `grant insert on public.ledger to pawl_fencer`)
	protect(t, admin, "public.ledger", "job:x", fence.Enforce)
	pool := asFencer(t, admin)

	a := acquire(t, admin, "job:x", "a", time.Minute)
	err = fence.Do(t.Context(), pool, a, func(tx pgx.Tx) error {
		if err := fence.Check(t.Context(), tx, a, "account:42"); err != nil {
			return err
		}
		if err := fence.Once(t.Context(), tx, a, "mail:42"); err != nil {
			return err
		}
		exec(t, tx, `select pawl.check('job:x', $1, 'account:42')`, a.Seq)
		return write(t.Context(), a)(tx)
	})
	if err != nil || rows() != 1 {
		t.Fatalf("%v, %d rows", err, rows())
	}
	if err := fence.Claim(t.Context(), pool, a, "account:42"); err != nil {
		t.Error(err)
	}
	takeOver(t, admin, a)
	wantErr(t, fence.Do(t.Context(), pool, a, nil), fence.ErrStale, fence.ErrNotHeld)
	if n := one[int](t, admin, `select count(*) from pawl.refusals where holder = 'a'`); n != 1 {
		t.Errorf("%d refusals recorded", n)
	}
	for _, sql := range []string{
		`select 1 from pawl.locks`, `update pawl.fences set last_token = 0`, `delete from pawl.refusals`, `select pawl.adopt(true)`,
		`select pawl.prune('0', 1)`, `insert into ledger values (1, 1)`, `select pawl.advance('{}')`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("the fencer may: %s", sql)
		}
	}
}

// asFencer is the same database in that role.
func asFencer(t testing.TB, admin *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	config := admin.Config()
	config.MaxConns = 2
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, `set role pawl_fencer`)
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
