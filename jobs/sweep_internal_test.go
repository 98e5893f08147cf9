package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

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

func TestALaneThatSomebodyHoldsDoesNotStopTheSweepOfOthers(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.mostWait = mostWait
	for _, lock := range []string{"A", "B"} {
		exec(t, pool, `select 1 from pawl.lane(array[$1])`, lock)
		exec(t, pool, `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at) values ('j', $1, $1, now(), now(), clock_timestamp()) returning 1`, lock)
		if s, err := r.start(t.Context(), []startRequest{{lock, uuid.New(), 0}}); err != nil || s[0].run == nil {
			t.Fatalf("start = %+v, %v", s, err)
		}
	}
	exec(t, pool, `with u as (update pawl.locks set expires_at = clock_timestamp() - interval '1 s' returning 1) select count(*) from u`)
	for _, lock := range []string{"A", "B"} { // whichever comes first
		held, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer held.Rollback(context.Background())
		exec(t, held, `select 1 from pawl.lane(array[$1])`, lock)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := r.sweep(ctx); err == nil {
			t.Error("sweep says nothing of the run that it couldn't end")
		}
		if n := exec(t, pool, `select count(*) from pawl.runs where ended_at is null`); n != 1 {
			t.Fatalf("%d runs are left, want the one whose lane is held", n)
		}
		_ = held.Rollback(context.Background())
		exec(t, pool, `update pawl.runs set ended_at = null, state = 'running' where ended_at is not null returning 1`)
		exec(t, pool, `update pawl.periods set state = 'running' where state <> 'running' returning 1`)
	}
}

func TestALaneThatSomebodyHoldsDoesNotStopTheBackstopOfOthers(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.mostWait = mostWait
	for _, lock := range []string{"A", "B", "C"} {
		exec(t, pool, `select 1 from pawl.lane(array[$1])`, lock)
		exec(t, pool, `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at) values ('j', $1, $1, now(), now(), clock_timestamp()) returning 1`, lock)
	}
	held, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Rollback(context.Background())
	exec(t, held, `select 1 from pawl.lane(array['A'])`)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := r.backstop(ctx); err == nil {
		t.Error("the backstop says nothing of the lane that it couldn't mend")
	}
	if n := exec(t, pool, `select count(*) from pawl.river_job`); n != 2 {
		t.Errorf("%d of the other lanes are mended, want 2", n)
	}
}
