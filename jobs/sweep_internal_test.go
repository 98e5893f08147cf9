package jobs

import (
	"context"
	"testing"
	"time"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// Two locks may have the same token, above all after a restart, when each new one gets floor + 1.
func TestTheSweepSparesATransactionWhoseTokenAnotherLockHadToo(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	exec(t, pool, `update pawl.clock set floor = pawl.now_us() + 60000000 returning 1`)
	other, err := r.repo.Acquire(t.Context(), "X", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	if run.token.Seq != other.Token.Seq {
		t.Fatalf("tokens %s and %s differ: the test shows nothing", run.token, other.Token)
	}
	if err := r.repo.Release(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if err := fence.Guard(t.Context(), tx, run.token); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, 5*time.Second, "transaction and release are more than a second old", func() bool {
		return exec(t, pool, `select count(*) from pg_stat_activity, pawl.locks where xact_start < clock_timestamp() - interval '1.2 s'
		  and application_name ~ '^pawl [0-9]+$' and name = 'X' and renewed_at < clock_timestamp() - interval '1.2 s'`) == 1
	})
	if _, err := r.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Errorf("commit = %v: the sweep has ended a healthy transaction", err)
	}
}
