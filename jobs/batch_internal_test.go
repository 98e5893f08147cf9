package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"pawl/internal/gather"
	"pawl/internal/pgtest"
)

type answer[R any] struct {
	result R
	err    error
}

// together sends requests so that they share one batch, and returns their answers.
func together[Q, R any](t *testing.T, exec func(context.Context, []Q) ([]R, error), qs ...Q) []chan answer[R] {
	t.Helper()
	busy, open := make(chan struct{}, 2*len(qs)), make(chan struct{})
	b := gather.New(1, mostBatch, func(ctx context.Context, qs []Q) ([]R, error) { busy <- struct{}{}; <-open; return exec(ctx, qs) })
	out := make([]chan answer[R], len(qs))
	ask := func(i int) {
		out[i] = make(chan answer[R], 1)
		go func() { r, err := b.Do(context.Background(), qs[i]); out[i] <- answer[R]{r, err} }()
	}
	for i := range qs { // the first occupies the executor, the others gather behind it
		ask(i)
		if i == 0 {
			<-busy
		}
		pgtest.Eventually(t, 5*time.Second, "the request waits", func() bool { return b.Waiting() == i })
	}
	close(open)
	t.Cleanup(b.Close)
	return out
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
