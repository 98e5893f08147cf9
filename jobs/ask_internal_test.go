package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
	"pawl/lockrepo"
)

// slowCommits makes every COMMIT that has changed a run or a checkpoint last.
func slowCommits(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, sql := range []string{
		`create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.7); return null; end $$`,
		`create constraint trigger slow after insert or update on pawl.runs deferrable initially deferred for each row execute function slow()`,
		`create constraint trigger slow after insert or update on pawl.checkpoints deferrable initially deferred for each row execute function slow()`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// A reply was lost while the server is still at the COMMIT: who asks has to wait for its end, or reads what was before.
func TestWhoAsksAfterALostReplyWaitsForTheTransactionsEnd(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	complete := func(run *Run) []endRequest { return []endRequest{{run: run, outcome: stateComplete}} }
	// A case acts, and asks while that is being committed; nil is the good answer.
	type test func(t *testing.T, r *Runner) (act, ask func() error)
	checkpoint := func(before bool) test {
		return func(t *testing.T, r *Runner) (act, ask func() error) {
			t.Helper()
			run := r.keep(t, r.mustStart(t, r.cfg.Pool))
			written := make(chan *guarded, 2)
			act = func() error {
				return run.Tx(ctx, func(tx pgx.Tx) error {
					defer func() { written <- tx.(*guarded) }()
					return run.Checkpoint(ctx, tx, 1)
				})
			}
			if before {
				if err := act(); err != nil {
					t.Fatal(err)
				}
				<-written
			}
			return act, func() error { return run.askCheckpoint(ctx, <-written, fence.ErrUnknown) }
		}
	}
	for name, c := range map[string]test{
		"start": func(t *testing.T, r *Runner) (act, ask func() error) {
			t.Helper()
			id := uuid.New()
			act = func() error { _, err := r.start(ctx, []startRequest{{"L", id, 0}}); return err }
			return act, func() error {
				run, err := r.findRun(ctx, id, "L", lockrepo.Now())
				if run == nil {
					t.Error("the run is not found")
				}
				return err
			}
		},
		"end": func(t *testing.T, r *Runner) (act, ask func() error) {
			t.Helper()
			run := r.mustStart(t, r.cfg.Pool)
			act = func() error { _, err := r.end(ctx, complete(run)); return err }
			return act, func() error {
				state, ended, err := r.ask(ctx, run)
				if !ended || state != stateComplete {
					t.Errorf("the run is said to be %s", state)
				}
				return err
			}
		},
		"completion": func(t *testing.T, r *Runner) (act, ask func() error) {
			t.Helper()
			run := r.keep(t, r.mustStart(t, r.cfg.Pool))
			act = func() error { return run.Complete(ctx, nil) }
			return act, func() error { return run.askComplete(ctx, fence.ErrUnknown) }
		},
		"first checkpoint":  checkpoint(false),
		"second checkpoint": checkpoint(true),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, pool := opened(t)
			owes(t, pool, "1")
			act, ask := c(t, r)
			slowCommits(t, pool)
			acted := make(chan error, 1)
			go func() { acted <- act() }()
			pgtest.Eventually(t, 10*time.Second, "COMMIT is under way", func() bool {
				return exec(t, pool, `select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`) > 0
			})
			if err := ask(); err != nil {
				t.Errorf("the answer is %v, want what is being committed", err)
			}
			if err := <-acted; err != nil {
				t.Error(err)
			}
		})
	}
}
