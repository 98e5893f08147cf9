package main

import (
	"flag"
	"log/slog"
	"os"
	"testing"

	"pawl/examples/internal/crew"
)

var rounds = flag.Int("rounds", 2, "rounds, each with a seed of its own")

func TestMain(m *testing.M) {
	crew.Main(work)
	os.Exit(m.Run())
}

func TestEachUnitIsSoldOnceAndEachOrderChargedOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(*rounds) { //nolint:gosec // a few
		r, err := play(t.Context(), seed+1, false, slog.New(slog.NewTextHandler(t.Output(), nil)))
		if err != nil {
			t.Fatal(err)
		}
		if !r.OK || r.Takeovers < 1 {
			t.Errorf("seed %d: %+v", seed+1, r)
		}
		t.Logf("seed %d: %+v", seed+1, r)
	}
}

// The same check finds what is sold on sight.
func TestSellingOnSightIsCaught(t *testing.T) {
	t.Parallel()
	r, err := play(t.Context(), 1, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if r.OK || r.Condition.Oversold == 0 {
		t.Errorf("the check finds nothing: %+v", r)
	}
}
