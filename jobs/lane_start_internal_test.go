package jobs

import (
	"context"
	"testing"

	"github.com/google/uuid"
)

// A lane that is there already: what makes a start wait is that it writes the row, not that it inserts one.
func TestAStartWaitsForALaneThatWasThereBefore(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	exec(t, pool, enterSQL)
	planner, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer planner.Rollback(context.Background())
	planOne(t, planner, "1")
	got := make(chan []started, 1)
	go func() {
		s, err := r.start(context.Background(), []startRequest{{"L", uuid.New(), 0}})
		if err != nil {
			t.Error(err)
		}
		got <- s
	}()
	waitsForLock(t, pool)
	if err := planner.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := <-got; len(s) != 1 || s[0].outcome != outcomeStarted {
		t.Errorf("start = %+v, want the period that the planner had inserted", s)
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
