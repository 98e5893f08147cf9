package jobs

import (
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/lockrepo"
)

// Whatever ends a lease of a run's, or is ended by one, writes who asked for it and when it would have ended.
func TestEveryTenureOfALaneKeepsTheRequestAndTheEnd(t *testing.T) {
	t.Parallel()
	const whose = `update pawl.locks set request_id = 'mine', expires_at = expires_at + interval '1 h' where name = 'L' returning 1`
	overdue := func(t *testing.T, r *Runner) {
		t.Helper()
		exec(t, r.pool, `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = 'L' returning 1`)
	}
	for how, end := range map[string]func(t *testing.T, r *Runner, run *Run){
		"finish": func(t *testing.T, r *Runner, run *Run) {
			t.Helper()
			if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}}); err != nil || !ok[0] {
				t.Fatal(ok, err)
			}
		},
		"handover": func(t *testing.T, r *Runner, run *Run) {
			t.Helper()
			if next, err := r.handover(t.Context(), []*Run{run}); err != nil || next[0] == nil {
				t.Fatal(next, err)
			}
		},
		"sweep": func(t *testing.T, r *Runner, _ *Run) {
			t.Helper()
			overdue(t, r)
			if _, err := r.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r, pool := opened(t)
			owes(t, pool, "1", "2")
			run := r.mustStart(t, pool)
			exec(t, pool, whose)
			end(t, r, run)
			if n := exec(t, pool, `select count(*) from pawl.tenures where request_id = 'mine' and (expires_at > ended_at or expires_at = ended_at and how = 'expired')`); n != 1 {
				t.Error("the tenure has not what the lock's row had")
			}
		})
	}
	t.Run("start takes over", func(t *testing.T) {
		t.Parallel()
		r, pool := opened(t)
		q := lockrepo.Request{Lock: "L", Holder: "api", Key: "k1", TTL: time.Minute, RequestID: "mine"}
		if _, err := r.repo.AcquireRequest(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		overdue(t, r)
		owes(t, pool, "1")
		r.mustStart(t, pool)
		if n := exec(t, pool, `select count(*) from pawl.tenures where request_id = 'mine' and key = 'k1' and expires_at = ended_at and how = 'taken_over'`); n != 1 {
			t.Error("the tenure has not what the lock's row had")
		}
		if n := exec(t, pool, `select count(*) from pawl.locks where request_id is null and key is null`); n != 1 {
			t.Error("the run's lease has the request of the one before")
		}
	})
}

// A caller of the lock API that waits for a lock is told when the run that has it ends.
func TestTheEndOfARunWakesWhoWaitsForItsLock(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	ear, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer ear.Release()
	if _, err := ear.Exec(t.Context(), "listen pawl_released"); err != nil {
		t.Fatal(err)
	}
	const waits = `insert into pawl.waiters (id, lock, until) select gen_random_uuid(), 'L', clock_timestamp() + interval '1 min' from generate_series(1, 3) returning 1`
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}}); err != nil || !ok[0] {
		t.Fatal(ok, err)
	}
	owes(t, pool, "2")
	exec(t, pool, waits)
	run = r.mustStart(t, pool)
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}}); err != nil || !ok[0] {
		t.Fatal(ok, err)
	}
	exec(t, pool, `select 1 from pg_notify('pawl_released', 'the end')`)
	var got []string
	pgtest.Eventually(t, 10*time.Second, "the last notification has come", func() bool {
		n, err := ear.Conn().WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n.Payload)
		return n.Payload == "the end"
	})
	if len(got) != 2 || got[0] != "L" {
		t.Errorf("notified %q, want one of L, for the run that somebody waited behind", got)
	}
}
