package jobs

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"pawl/internal/pgtest"
)

// deliverySQL is the delivery that the lane knows.
const deliverySQL = `select coalesce((select delivery from pawl.lanes where lock = 'L'), 0)`

// arrive is a delivery that reaches start.
func (r *Runner) arrive(t *testing.T, delivery int64) started {
	t.Helper()
	s, err := r.start(t.Context(), []startRequest{{"L", uuid.New(), delivery}})
	if err != nil {
		t.Fatal(err)
	}
	return s[0]
}

// River's page retries an old row, or a worker pauses between fetch and start.
func TestAnOldDeliveryNeitherRunsBesideTheFreshOneNorJumpsItsBackoff(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1", "2")
	first := exec(t, pool, deliverySQL)
	run := r.mustStart(t, pool)
	if s := r.arrive(t, first); s.outcome != outcomeNothing {
		t.Fatalf("beside the run the old delivery found %+v", s)
	}
	ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateFailed, retry: time.Hour, err: "no"}})
	if err != nil || !ok[0] {
		t.Fatalf("end = %v, %v", ok, err)
	}
	second := exec(t, pool, deliverySQL)
	if second == 0 || second == first {
		t.Fatalf("the retry's delivery is %d after %d, want a fresh one", second, first)
	}
	for _, old := range []int64{first, second} { // the fresh one too, before its time
		if s := r.arrive(t, old); s.outcome != outcomeNothing {
			t.Fatalf("delivery %d jumped the backoff: %+v", old, s)
		}
	}
	exec(t, pool, `update pawl.periods set not_before = null where key = '1' and attempts = 1 returning 1`)
	exec(t, pool, leaveTestSQL)
	paused := exec(t, pool, deliverySQL)
	exec(t, pool, `update pawl.river_job set state = 'running', attempted_at = clock_timestamp() - interval '1 min' where id = $1 returning 1`, paused)
	if err := r.backstop(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh := exec(t, pool, deliverySQL)
	if s := r.arrive(t, fresh); fresh == paused || s.run == nil || s.run.Period.Key != "1" || s.run.Attempt != 2 {
		t.Fatalf("delivery %d after %d found %+v, want the second attempt at the first period", fresh, paused, s)
	}
	if s := r.arrive(t, paused); s.outcome != outcomeNothing {
		t.Errorf("the paused delivery woke up and found %+v", s)
	}
}

// River's leader discards rows, its page cancels and deletes them: none of that is the run's business.
func TestARunCompletesWhateverHasBecomeOfItsRiverRow(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]string{
		"deleted":   `delete from pawl.river_job where id = $1 returning 1`,
		"discarded": `update pawl.river_job set state = 'discarded', finalized_at = now() where id = $1 returning 1`,
		"cancelled": `update pawl.river_job set state = 'cancelled', finalized_at = now() where id = $1 returning 1`,
		"retried":   `update pawl.river_job set state = 'available', scheduled_at = now() where id = $1 returning 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, pool := opened(t)
			owes(t, pool, "1", "2")
			run := r.keep(t, r.mustStart(t, pool))
			exec(t, pool, `update pawl.river_job set state = 'running', attempted_at = now() where id = $1 returning 1`, run.delivery)
			exec(t, pool, act, run.delivery)
			if err := run.Complete(t.Context(), nil); err != nil {
				t.Errorf("Complete = %v", err)
			}
			if n := exec(t, pool, `select count(*) from pawl.periods where key = '1' and state = 'complete'`); n != 1 {
				t.Error("the period is not complete")
			}
			if n := exec(t, pool, ruleSQL); n != 1 || exec(t, pool, deliverySQL) == run.delivery {
				t.Errorf("%d live deliveries for the second period, want a fresh one", n)
			}
		})
	}
}

// The database's clock leaps a day ahead: tomorrow's periods would run and be complete.
func TestNothingIsPlannedWhenTheDatabasesClockLeapsAhead(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	j := r.jobs["j"]
	j.Schedule, j.Start, j.Lock, j.MaxRetries = "@daily", time.Now().AddDate(0, 0, -3), "L", 5
	if err := r.registerJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	r.clock = func() time.Time { return time.Now().AddDate(0, 0, -1) } // seen from here it is a day ahead
	if err := r.plan(t.Context()); err == nil {
		t.Error("plan says nothing of the clocks")
	}
	if n := exec(t, pool, `select count(*) from pawl.periods`); n != 0 {
		t.Errorf("%d periods were planned", n)
	}
}

// Somebody's birth of the lock is not committed yet: start doesn't wait for it, nor grants to a delivery that has gone.
func TestAStartDoesNotWaitForABirth(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	birth, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, birth, `select pg_try_advisory_xact_lock(hashtext('pawl.locks'), hashtext('L'))::int`)
	exec(t, birth, `insert into pawl.locks (name, token, incarnation) values ('L', 1, 1) returning 1`)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	s, err := r.start(ctx, []startRequest{{"L", uuid.New(), 0}})
	if err != nil || s[0].outcome != outcomeBusy {
		t.Errorf("start = %+v, %v, want busy, at once", s, err)
	}
	if err := birth.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, 5*time.Second, "the period starts afterwards", func() bool { return r.arrive(t, 0).run != nil })
}

// By when they were due, not by when somebody planned them or which job they are of.
func TestTheOldestPeriodOfALockRunsFirst(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	exec(t, pool, enterSQL)
	for key, hours := range map[string]int{"a third": 1, "b second": 2, "c first": 3, "d fourth": 0} {
		exec(t, pool, `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at)
		  values ('j', $1, 'L', now(), now(), clock_timestamp() - make_interval(hours => $2)) returning 1`, key, hours)
	}
	run := r.mustStart(t, pool)
	got := []string{run.Period.Key}
	next, err := r.handover(t.Context(), []*Run{run})
	if err != nil || next[0] == nil {
		t.Fatalf("handover = %v, %v", next, err)
	}
	got = append(got, next[0].Period.Key)
	if ok, err := r.end(t.Context(), []endRequest{{run: next[0], outcome: stateComplete}}); err != nil || !ok[0] {
		t.Fatalf("end = %v, %v", ok, err)
	}
	got = append(got, r.mustStart(t, pool).Period.Key)
	if want := []string{"c first", "b second", "a third"}; !slices.Equal(got, want) {
		t.Errorf("periods ran as %q, want %q", got, want)
	}
}
