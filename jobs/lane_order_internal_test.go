package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
)

// The second finds what the first has delivered: whoever leaves enters the lane before it looks.
func TestTwoBackstopsThatMeetDeliverOnce(t *testing.T) {
	t.Parallel()
	_, pool := opened(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	exec(t, pool, insertSQL, "1")
	exec(t, tx, leaveTestSQL)
	second := make(chan error, 1)
	go func() { _, err := pool.Exec(context.Background(), leaveTestSQL); second <- err }()
	waitsForLock(t, pool)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.river_job`); n != 1 {
		t.Errorf("%d deliveries, want 1", n)
	}
}

// Lanes come before periods and runs: who cancels a period holds its lane, and must not meet an end that holds its row.
func TestAnEndThatWaitsForItsLaneHoldsNoPeriod(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	exec(t, tx, enterSQL)
	ended := make(chan error, 1)
	go func() {
		_, err := r.end(context.Background(), []endRequest{{run: run, outcome: stateComplete}})
		ended <- err
	}()
	waitsForLock(t, pool)
	if _, err := tx.Exec(t.Context(), `select 1 from pawl.periods where key = '1' for update nowait`); err != nil {
		t.Errorf("the period = %v: it is locked before its lane", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAStartWaitsForItsLaneAndSeesWhatWasPlanned(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
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

// A guarded transaction can be open for as long as a lease lasts: a start, and all that share its transaction, must not
// wait for it.
func TestAStartDoesNotWaitForAGuardThatIsStillOpen(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	lease, err := r.repo.Acquire(t.Context(), "L", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	open, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Rollback(context.Background())
	exec(t, open, `select 1 from pawl.guard($1, $2)`, "L", lease.Token.Seq)
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '0.1 s' where name = 'L' returning 1`)
	owes(t, pool, "1")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	s, err := r.start(ctx, []startRequest{{"L", uuid.New(), 0}})
	if err != nil || s[0].outcome != outcomeBusy {
		t.Errorf("start = %+v, %v, want busy, at once", s, err)
	}
}

func TestAHandOverCountsTheNextPeriodsAttempt(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1", "2")
	next, err := r.handover(t.Context(), []*Run{r.mustStart(t, pool)})
	if err != nil || next[0] == nil || next[0].Attempt != 1 {
		t.Fatalf("handover = %+v, %v, want attempt 1", next, err)
	}
	if n := exec(t, pool, `select attempts from pawl.periods where key = '2'`); n != 1 {
		t.Errorf("%d attempts are counted, want 1", n)
	}
}

func TestASweepThatWaitsForItsLaneHoldsNoPeriod(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	r.mustStart(t, pool)
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = 'L' returning 1`)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	exec(t, tx, enterSQL)
	swept := make(chan error, 1)
	go func() { _, err := r.sweep(context.Background()); swept <- err }()
	waitsForLock(t, pool)
	if _, err := tx.Exec(t.Context(), `select 1 from pawl.periods where key = '1' for update nowait`); err != nil {
		t.Errorf("the period = %v: it is locked before its lane", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-swept; err != nil {
		t.Error(err)
	}
}
