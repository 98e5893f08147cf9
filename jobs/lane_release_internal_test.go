package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"pawl/internal/pgtest"
)

func TestALockHeldOutsideIsLeftAloneAndItsReleaseWakesTheLane(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	lease, err := r.repo.Acquire(t.Context(), "L", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	owes(t, pool, "1")
	s, err := r.start(t.Context(), []startRequest{{"L", uuid.New(), exec(t, pool, `select max(id) from pawl.river_job`)}})
	if err != nil || s[0].outcome != outcomeBusy {
		t.Fatalf("start = %+v, %v, want busy", s, err)
	}
	later := `select count(*) from pawl.lanes n join pawl.river_job j on j.id = n.delivery where n.lock = 'L' and j.scheduled_at > clock_timestamp()`
	if n := exec(t, pool, later); n != 1 {
		t.Errorf("%d deliveries for later, want 1", n)
	}
	if err := r.repo.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if err := r.wake(t.Context(), "L"); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, later); n != 0 {
		t.Error("the delivery still waits though the lock was released")
	}
	if run := r.mustStart(t, pool); run.token.Seq <= lease.Token.Seq {
		t.Errorf("token %s after %s", run.token, lease.Token)
	}
}

// A notification takes a lock on all commits: only a release that somebody waits for sends one.
func TestOnlyAReleaseThatALaneWaitsForIsNotified(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), "listen pawl_released"); err != nil {
		t.Fatal(err)
	}
	owes(t, pool, "1")
	for _, lock := range []string{"nobody waits", "L"} {
		lease, err := r.repo.Acquire(t.Context(), lock, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if lock == "L" {
			s, err := r.start(t.Context(), []startRequest{{"L", uuid.New(), 0}})
			if err != nil || s[0].outcome != outcomeBusy {
				t.Fatalf("start = %+v, %v, want busy", s, err)
			}
		}
		if err := r.repo.Release(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	n, err := conn.Conn().WaitForNotification(ctx)
	if err != nil || n.Payload != "L" {
		t.Errorf("the first notification is %+v, %v, want that of L", n, err)
	}
}

// The whole way: the release is notified, the listener hears it, and the waiting delivery comes before its time.
func TestARunnerStartsAtOnceWhenTheLockItWaitsForIsReleased(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	lease, err := r.repo.Acquire(t.Context(), "L", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	owes(t, pool, "1")
	if s, err := r.start(t.Context(), []startRequest{{"L", uuid.New(), 0}}); err != nil || s[0].outcome != outcomeBusy {
		t.Fatalf("start = %+v, %v, want busy", s, err)
	}
	exec(t, pool, `update pawl.lanes set not_before = clock_timestamp() + interval '1 h' where lock = 'L' returning 1`)
	ctx, stop := context.WithCancel(t.Context())
	heard := make(chan error, 1)
	go func() { _, err := r.listen(ctx); heard <- err }()
	pgtest.Eventually(t, 10*time.Second, "the listener listens", func() bool {
		return exec(t, pool, `select count(*) from pg_stat_activity where datname = current_database() and query = 'listen pawl_released'`) > 0
	})
	if err := r.repo.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, 10*time.Second, "the lane waits no more", func() bool {
		return exec(t, pool, `select count(*) from pawl.lanes where lock = 'L' and not_before is null`) == 1
	})
	stop()
	if err := <-heard; err == nil {
		t.Error("the listener ended without an error")
	}
}
