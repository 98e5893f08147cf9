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
