package jobs

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
)

// Two transactions of one run: the second's checkpoint hides the first's, whose reply was lost.
func TestACheckpointThatAnotherHasFollowedIsNotTakenForLost(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.keep(t, r.mustStart(t, pool))
	var first *guarded
	for i := range 2 {
		err := run.Tx(t.Context(), func(tx pgx.Tx) error {
			if i == 0 {
				first = tx.(*guarded)
			}
			return run.Checkpoint(t.Context(), tx, i)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := run.askCheckpoint(t.Context(), first, fence.ErrUnknown); !errors.Is(err, fence.ErrUnknown) {
		t.Errorf("the first transaction = %v: it was committed, and tried again it would be applied twice", err)
	}
}

func TestACheckpointThatWasRolledBackIsKnownToBe(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.keep(t, r.mustStart(t, pool))
	for range 2 { // without a checkpoint before it, and with one
		var g *guarded
		_ = run.Tx(t.Context(), func(tx pgx.Tx) error {
			g = tx.(*guarded)
			return errors.Join(run.Checkpoint(t.Context(), tx, 1), errors.New("no"))
		})
		if err := run.askCheckpoint(t.Context(), g, fence.ErrUnknown); !errors.Is(err, ErrNotCommitted) {
			t.Errorf("the transaction = %v, want ErrNotCommitted", err)
		}
		if err := run.Tx(t.Context(), func(tx pgx.Tx) error { g = tx.(*guarded); return run.Checkpoint(t.Context(), tx, 2) }); err != nil {
			t.Fatal(err)
		}
		if err := run.askCheckpoint(t.Context(), g, fence.ErrUnknown); err != nil {
			t.Errorf("the committed transaction = %v", err)
		}
	}
}

func TestACheckpointNeverReplacesOneWithALargerToken(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.keep(t, r.mustStart(t, pool))
	exec(t, pool, `insert into pawl.checkpoints (job, key, revision, token, operation, value) values ('j', '1', 1, $1, gen_random_uuid(), '"newer"') returning 1`,
		run.token.Seq+1)
	err := run.Tx(t.Context(), func(tx pgx.Tx) error { return run.Checkpoint(t.Context(), tx, "older") })
	if !errors.Is(err, fence.ErrNotHeld) {
		t.Errorf("Checkpoint = %v, want a refusal", err)
	}
	if n := exec(t, pool, `select count(*) from pawl.checkpoints where value = '"newer"'`); n != 1 {
		t.Error("the newer checkpoint is gone")
	}
}

func TestACheckpointOfAPeriodThatIsNotTheRunsAnyMoreIsRefused(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.keep(t, r.mustStart(t, pool))
	err := run.Tx(t.Context(), func(tx pgx.Tx) error { // cancelled after the guard
		exec(t, pool, `update pawl.periods set state = 'cancelled', ended_at = clock_timestamp() where key = '1' returning 1`)
		return run.Checkpoint(t.Context(), tx, 1)
	})
	if !errors.Is(err, fence.ErrNotHeld) {
		t.Errorf("Checkpoint = %v, want a refusal", err)
	}
}

func TestATransactionOfACancelledPeriodIsRefused(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.keep(t, r.mustStart(t, pool))
	exec(t, pool, `update pawl.periods set state = 'cancelled', ended_at = clock_timestamp() where key = '1' returning 1`)
	if err := run.Tx(t.Context(), func(pgx.Tx) error { return nil }); !errors.Is(err, fence.ErrNotHeld) {
		t.Errorf("Tx = %v, want a refusal though the lease lives", err)
	}
}

// The first guard is gone with its transaction: what a function smuggles past it is met by the second.
func TestATransactionWhoseLockWasForcedMeanwhileCommitsNothing(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	if _, err := pool.Exec(t.Context(), `create table result (n int)`); err != nil {
		t.Fatal(err)
	}
	owes(t, pool, "1")
	run := r.keep(t, r.mustStart(t, pool))
	err := run.Tx(t.Context(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `insert into result values (1)`); err != nil {
			return err
		}
		exec(t, pool, `update pawl.locks set grant_id = null, holder = null, expires_at = null where name = 'L' returning 1`)
		return nil
	})
	if !errors.Is(err, fence.ErrNotHeld) {
		t.Errorf("Tx = %v, want a refusal", err)
	}
	if n := exec(t, pool, `select count(*) from result`); n != 0 {
		t.Error("it has committed all the same")
	}
}
