package lockrepo

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

func TestAtMostNHoldSlotsAtOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := short(t, pool)
	var now, most, worked atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for late := time.Now().Add(time.Minute); time.Now().Before(late); { // real clock: the others let it in when they have worked
				err := r.HoldSlot(t.Context(), "report:acme", 3, func(context.Context, Lease) error {
					n := now.Add(1)
					defer now.Add(-1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					worked.Add(1)
					return nil
				})
				if err == nil {
					return
				}
				if !errors.Is(err, ErrHeld) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if worked.Load() != 20 || most.Load() > 3 {
		t.Errorf("%d have worked, %d at once; want 20, at most 3", worked.Load(), most.Load())
	}
}

func TestASlotOfAHolderThatIsGoneIsTakenAfterItsLease(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := short(t, pool)
	first, err := r.AcquireSlot(t.Context(), "x", 2, time.Second) // nobody renews it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.AcquireSlot(t.Context(), "x", 2, time.Minute); err != nil {
		t.Fatal(err)
	}
	var full *SlotsError
	if _, err := r.AcquireSlot(t.Context(), "x", 2, time.Minute); !errors.As(err, &full) || full.Limit != 2 || !errors.Is(err, ErrHeld) {
		t.Errorf("a third of two = %v, want a SlotsError", err)
	}
	var next Lease
	pgtest.Eventually(t, 10*time.Second, "the slot is free again", func() bool {
		next, err = r.AcquireSlot(t.Context(), "x", 2, time.Minute)
		return err == nil
	})
	if next.Token.Lock != first.Token.Lock || next.Token.Seq <= first.Token.Seq {
		t.Errorf("slot %v after %v", next.Token, first.Token)
	}
}

func TestSlotsAreChecked(t *testing.T) {
	t.Parallel()
	r := short(t, pgtest.New(t))
	for _, c := range []struct {
		name string
		n    int
	}{{"", 1}, {"x", 0}, {"x", 1001}} {
		if _, err := r.AcquireSlot(t.Context(), c.name, c.n, time.Second); !errors.Is(err, ErrInput) {
			t.Errorf("slot of %q, %d = %v, want ErrInput", c.name, c.n, err)
		}
	}
}

func TestASmallerLimitLeavesHigherSlotsAlone(t *testing.T) {
	t.Parallel()
	r := short(t, pgtest.New(t))
	for range 3 {
		if _, err := r.AcquireSlot(t.Context(), "x", 3, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	l, err := r.AcquireSlot(t.Context(), "x", 4, time.Minute)
	if err != nil || l.Token.Lock != "x#3" {
		t.Fatalf("the fourth slot = %v, %v", l.Token, err)
	}
	if _, err := r.AcquireSlot(t.Context(), "x", 1, time.Minute); !errors.Is(err, ErrHeld) {
		t.Errorf("a slot of one, which is held, = %v, want ErrHeld", err)
	}
	if next, err := r.Renew(t.Context(), l); err != nil || next.Token != l.Token {
		t.Errorf("the higher slot's lease = %v, %v", next.Token, err)
	}
}
