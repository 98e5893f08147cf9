package jobs

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"pawl/internal/pgtest"
)

// together sends requests so that they share one batch, and returns their answers.
func together[Q, R any](t *testing.T, exec func(context.Context, []Q) ([]R, error), qs ...Q) []chan answer[R] {
	t.Helper()
	busy, open := make(chan struct{}, 2*len(qs)), make(chan struct{})
	b := newBatcher(1, mostBatch, func(ctx context.Context, qs []Q) ([]R, error) { busy <- struct{}{}; <-open; return exec(ctx, qs) })
	out := make([]chan answer[R], len(qs))
	ask := func(i int) {
		out[i] = make(chan answer[R], 1)
		go func() { r, err := b.do(qs[i]); out[i] <- answer[R]{r, err} }()
	}
	for i := range qs { // the first occupies the executor, the others gather behind it
		ask(i)
		if i == 0 {
			<-busy
		}
		pgtest.Eventually(t, 5*time.Second, "the request waits", func() bool { return len(b.calls) == i })
	}
	close(open)
	t.Cleanup(b.close)
	return out
}

func TestARequestThatTheServerRefusesDoesNotPoisonItsBatch(t *testing.T) {
	t.Parallel()
	refuse := func(_ context.Context, qs []string) ([]string, error) {
		if slices.Contains(qs, "poison") {
			return nil, &pgconn.PgError{Code: "22021", SeverityUnlocalized: "ERROR"}
		}
		return qs, nil
	}
	got := together(t, refuse, "first", "a", "poison", "b")
	for i, want := range []string{"first", "a", "", "b"} {
		a := <-got[i]
		if a.result != want || (a.err != nil) != (want == "") {
			t.Errorf("answer %d = %q, %v, want %q", i, a.result, a.err, want)
		}
	}
}

// Whoever holds a lane for long may hold up that lock alone.
func TestAnEndThatWaitsForItsLaneDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.mostWait = mostWait
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	exec(t, pool, `select 1 from pawl.lane(array['M'])`)

	exec(t, pool, `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at) values ('j', '2', 'M', now(), now(), clock_timestamp()) returning 1`)
	s, err := r.start(t.Context(), []startRequest{{"M", uuid.New(), 0}})
	if err != nil || s[0].run == nil {
		t.Fatalf("start = %+v, %v", s, err)
	}
	held, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Rollback(context.Background())
	exec(t, held, enterSQL) // lane L
	nobody := &Run{ID: uuid.New(), token: run.token}
	nobody.token.Lock = "N"
	got := together(t, r.end, endRequest{run: nobody, outcome: stateComplete}, endRequest{run: run, outcome: stateComplete},
		endRequest{run: s[0].run, outcome: stateComplete})
	pgtest.Eventually(t, 3*time.Second, "the other run is complete", func() bool {
		return exec(t, pool, `select count(*) from pawl.runs where lock = 'M' and state = 'complete'`) == 1
	})
	for _, c := range got[2:] {
		if a := <-c; a.err != nil || !a.result {
			t.Errorf("end = %v, %v", a.result, a.err)
		}
	}
}

func TestARequestAfterTheEndIsAnError(t *testing.T) {
	t.Parallel()
	b := newBatcher(1, 1, func(_ context.Context, qs []int) ([]int, error) { return qs, nil })
	b.close()
	if _, err := b.do(1); err == nil {
		t.Errorf("do = %v, want an error that says so", err)
	}
}
