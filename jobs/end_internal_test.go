package jobs

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
)

// keep makes a started run one whose function could be called.
func (r *Runner) keep(t *testing.T, run *Run) *Run {
	t.Helper()
	_, run.kept = r.repo.Keep(t.Context(), run.lease)
	t.Cleanup(run.kept.Stop)
	return run
}

// Postgres takes no NUL and no half characters: the end of the run, and of all that share its transaction, would fail.
func TestAnErrorOfAnyBytesEndsItsRun(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"NUL": "bad row \x00 in file", "not UTF-8": "bad row \xff\xfe in file", "cut inside a character": "bad row " + strings.Repeat("é", 3000) + "x",
		"the same, one byte further": "bad row  " + strings.Repeat("é", 3000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, pool := opened(t)
			owes(t, pool, "1")
			r.finish(t.Context(), r.keep(t, r.mustStart(t, pool)), stateFailed, errors.New(text))
			if n := exec(t, pool, `select count(*) from pawl.runs where state = 'failed' and error like 'bad row%'`); n != 1 {
				t.Error("the run isn't ended with its error")
			}
		})
	}
}

// bare has an Error that needs a receiver: a nil *bare in an error is the classic mistake.
type bare struct{ text string }

func (b *bare) Error() string { return b.text }

func TestAnErrorThatCannotBeReadIsAFailure(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.keep(t, r.mustStart(t, pool))
	run.job.Func = func(context.Context, *Run) error { var b *bare; return b }
	outcome, err := r.call(t.Context(), run, nil)
	r.finish(t.Context(), run, outcome, err)
	if n := exec(t, pool, `select count(*) from pawl.runs where state = 'failed' and error like '%nil pointer%'`); n != 1 {
		t.Error("the run isn't ended with what its error did")
	}
}

func TestAFunctionThatEndsItsGoroutineFails(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.keep(t, r.mustStart(t, pool))
	run.job.Func = func(context.Context, *Run) error { runtime.Goexit(); return nil }
	back := make(chan string, 1)
	go func() { outcome, _ := r.call(context.WithoutCancel(t.Context()), run, nil); back <- outcome }()
	pgtest.Eventually(t, 3*time.Second, "the call returns, or its slot is lost", func() bool { return len(back) == 1 })
	if outcome := <-back; outcome != stateFailed {
		t.Errorf("outcome %q, want a failure", outcome)
	}
}

// Progress is advice: it may neither wait for an end that holds a run's row nor lock rows in an order of its own.
func TestProgressWaitsForNoEnd(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	end, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer end.Rollback(context.Background())
	exec(t, end, `select 1 from pawl.runs where id = $1 for update`, run.ID)
	r.live.add(run)
	run.Progress(1, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := r.flush(ctx); err != nil {
		t.Errorf("flush = %v: it waits for the row of a run that ends", err)
	}
}

// A function that hangs inside Complete must not keep its run from being ended.
func TestARunIsEndedThoughItsFunctionHangsInComplete(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.keep(t, r.mustStart(t, pool))
	inside, release, back := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		back <- run.Complete(context.Background(), func(pgx.Tx) error { close(inside); <-release; return nil })
	}()
	<-inside
	ended := make(chan struct{})
	go func() {
		run.kept.Revoke(ErrTimeout)
		r.finish(context.Background(), run, stateTimedOut, ErrTimeout)
		close(ended)
	}()
	timedOut := false
	defer func() {
		if !timedOut {
			close(release)
		}
	}()
	pgtest.Eventually(t, 3*time.Second, "the run is timed out", func() bool {
		return exec(t, pool, `select count(*) from pawl.runs where state = 'timed_out'`) == 1
	})
	timedOut = true
	<-ended
	close(release)
	if err := <-back; err == nil {
		t.Error("Complete has succeeded after its run had ended")
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where state = 'open'`); n != 1 {
		t.Error("the period isn't owed again")
	}
}
