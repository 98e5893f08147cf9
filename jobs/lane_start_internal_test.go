package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
)

// blockedOrDone waits until somebody waits for a row, or what was to be done is done without a wait.
func blockedOrDone[T any](t *testing.T, pool *pgxpool.Pool, done <-chan T) {
	t.Helper()
	pgtest.Eventually(t, 10*time.Second, "it waits for the lane, or has not waited", func() bool {
		return len(done) > 0 || exec(t, pool, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) > 0
	})
}

// The planner sees the run and delivers nothing; the end must see the planner's period.
func TestAPeriodThatIsPlannedWhileARunEndsIsDelivered(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	planner, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer planner.Rollback(context.Background())
	planOne(t, planner, "2")
	exec(t, planner, leaveTestSQL)
	ended := make(chan error, 1)
	go func() {
		_, err := r.end(context.Background(), []endRequest{{run: run, outcome: stateComplete}})
		ended <- err
	}()
	blockedOrDone(t, pool, ended)
	if err := planner.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, ruleSQL); n != 1 {
		t.Errorf("%d live deliveries for the second period, want 1: it is stranded", n)
	}
}

// The planner sees a delivery that is on its way and sends no other; the start that it reaches must see the period.
func TestAPeriodThatIsPlannedWhileItsDeliveryArrivesIsStarted(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	id := exec(t, pool, `update pawl.river_job set state = 'running', attempted_at = clock_timestamp() returning id`)
	exec(t, pool, `update pawl.periods set state = 'cancelled', ended_at = clock_timestamp() returning 1`)
	planner, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer planner.Rollback(context.Background())
	planOne(t, planner, "2")
	exec(t, planner, leaveTestSQL)
	got := make(chan []started, 1)
	go func() {
		s, err := r.start(context.Background(), []startRequest{{"L", uuid.New(), id}})
		if err != nil {
			t.Error(err)
		}
		got <- s
	}()
	blockedOrDone(t, pool, got)
	if err := planner.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := <-got; len(s) != 1 || s[0].outcome != outcomeStarted {
		t.Errorf("start = %+v with %d deliveries to come: the period is stranded", s, exec(t, pool, ruleSQL))
	}
}

// River's completer knows a row by its id alone: a worker that wakes up late finishes the row that it had fetched.
func TestASweptRunIsDeliveredByAFreshRiverRow(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	exec(t, pool, `update pawl.river_job set state = 'running', attempted_at = now() where id = $1 returning 1`, run.delivery)
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() where name = 'L' returning 1`)
	if _, err := r.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `update pawl.river_job set state = 'completed', finalized_at = now() where id = $1 returning 1`, run.delivery)
	if n := exec(t, pool, ruleSQL); n != 1 {
		t.Errorf("%d live deliveries after the old worker has finished its own, want 1", n)
	}
}

// River calls a delivery running until its run has ended. If the lane still knew it then, an end would take it for one that
// is to come.
func TestADeliveryThatHasArrivedIsNoneToCome(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	exec(t, pool, `update pawl.river_job set state = 'running', attempted_at = clock_timestamp() where id = $1 returning 1`, run.delivery)
	owes(t, pool, "2")
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}}); err != nil || !ok[0] {
		t.Fatalf("end = %v, %v", ok, err)
	}
	if n := exec(t, pool, ruleSQL); n != 1 {
		t.Errorf("%d live deliveries for the second period, want 1: it is stranded", n)
	}
}
