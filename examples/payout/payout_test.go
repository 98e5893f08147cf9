package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"pawl/examples/internal/crew"
)

// The workers are processes of this test binary.
func TestMain(m *testing.M) {
	if name := os.Getenv(workerEnv); name != "" {
		if err := work(name); err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func play(t *testing.T, args ...string) (r result, code int) {
	t.Helper()
	var out, said bytes.Buffer
	code = example().Command(t.Context(), append(args, "--exit", "--json"), &out, &said)
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("exit code %d, printed %q: %s", code, out.String(), said.String())
	}
	t.Logf("%s%s", said.String(), out.String())
	return r, code
}

var soak = crew.NewSoak(flag.CommandLine)

func TestEachMerchantIsPaidOnceThoughWorkersDieAndStopWithTheirCallsUnderWay(t *testing.T) {
	rounds := soak.Rounds
	r, code := play(t, "--rounds", strconv.Itoa(rounds), "--seed", strconv.FormatUint(soak.Seed, 10))
	if !r.OK || code != 0 {
		t.Errorf("exit code %d, %+v", code, r)
	}
	if r.Owed == 0 || r.Ours != r.Owed || r.Provider != r.Owed || r.Payments != 60*rounds {
		t.Errorf("owed %d, ours %d, the provider's %d in %d payments", r.Owed, r.Ours, r.Provider, r.Payments)
	}
	if r.Kills != rounds || r.Pauses != rounds || r.Takeovers < 2*rounds {
		t.Errorf("%d kills, %d pauses, %d takeovers in %d rounds", r.Kills, r.Pauses, r.Takeovers, rounds)
	}
	if r.Lost == 0 || r.Replayed == 0 || r.Failed != 6*rounds {
		t.Errorf("%d replies lost, %d replayed, %d declined: the provider was too kind", r.Lost, r.Replayed, r.Failed)
	}
	if t.Failed() {
		return
	}
	right := fmt.Sprintf("%d payments, %d.%02d owed, booked and paid; %d replies lost", r.Payments, r.Owed/100, r.Owed%100, r.Lost)
	if err := soak.Record("payout", crew.Faults{Kills: r.Kills, Pauses: r.Pauses, Takeovers: r.Takeovers, Refusals: r.Refusals}, right); err != nil {
		t.Error(err)
	}
}

// What the test above would miss is no test.
func TestWithTheTokenInTheKeyTheProviderPaysTwiceAndTheBooksSaySo(t *testing.T) {
	r, code := play(t, "--rounds", "1", "--seed", "7", "--broken")
	if r.OK || code != 1 || r.Twice == 0 || r.Provider <= r.Owed || r.Unmatched == 0 {
		t.Errorf("exit code %d, %+v: want it to be found out", code, r)
	}
}
