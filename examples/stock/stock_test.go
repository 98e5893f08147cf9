package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"testing"

	"pawl/examples/internal/crew"
)

var soak = crew.NewSoak(flag.CommandLine)

func TestMain(m *testing.M) {
	crew.Main(work)
	os.Exit(m.Run())
}

func TestEachUnitIsSoldOnceAndEachOrderChargedOnce(t *testing.T) {
	t.Parallel()
	var faults crew.Faults
	var units, charged, alone int
	for seed := range soak.Seeds() {
		r, err := play(t.Context(), crew.Quiet(seed, t.Output()), false)
		if err != nil {
			t.Fatal(err)
		}
		if !r.OK || r.Takeovers < 1 {
			t.Errorf("seed %d: %+v", seed, r)
		}
		t.Logf("seed %d: %+v", seed, r)
		faults.Add(r.Faults)
		units, charged, alone = units+r.Condition.Units+r.Reservation.Units, charged+r.Charged, alone+r.LockAlone.Oversold
	}
	if t.Failed() {
		return
	}
	right := fmt.Sprintf("%d units sold once, %d orders charged once; a lock alone oversold %d units", units, charged, alone)
	if err := soak.Record("stock", faults, right); err != nil {
		t.Error(err)
	}
}

// The same check finds what is sold on sight.
func TestSellingOnSightIsCaught(t *testing.T) {
	t.Parallel()
	r, err := play(t.Context(), crew.Quiet(1, io.Discard), true)
	if err != nil {
		t.Fatal(err)
	}
	if r.OK || r.Condition.Oversold == 0 {
		t.Errorf("the check finds nothing: %+v", r)
	}
}
