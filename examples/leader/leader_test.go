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

func TestNoStepIsDoneByALeaderThatWasSucceeded(t *testing.T) {
	t.Parallel()
	var faults crew.Faults
	var steps, leaders int
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
		steps, leaders = steps+r.Steps, leaders+r.Leaders
	}
	if t.Failed() {
		return
	}
	if err := soak.Record("leader", faults, fmt.Sprintf("%d steps in %d terms of office, none out of order", steps, leaders)); err != nil {
		t.Error(err)
	}
}

// The same check finds what a lock alone lets through.
func TestALeaderWithoutAGuardIsCaught(t *testing.T) {
	t.Parallel()
	r, err := play(t.Context(), crew.Quiet(1, io.Discard), true)
	if err != nil {
		t.Fatal(err)
	}
	if r.OK || r.OutOfOrder == 0 {
		t.Errorf("the check finds nothing: %+v", r)
	}
}
