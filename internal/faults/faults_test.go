package faults_test

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"pawl/internal/faults"
)

var (
	seedFlag  = flag.Uint64("faults.seed", 0, "seed of the faults; 0 is today's date")
	writeFlag = flag.String("faults.write", "", "let each fault happen five times and write the file that says how long each took")
)

// TestMain is also the entry of the worker processes.
func TestMain(m *testing.M) {
	os.Exit(faults.Main(m, faults.Kinds{"ledger": faults.Ledgers, "leaping": leaping}))
}

func seed(t *testing.T) uint64 {
	t.Helper()
	s := *seedFlag
	if s == 0 {
		s, _ = strconv.ParseUint(time.Now().UTC().Format("20060102"), 10, 64)
	}
	t.Logf("seed %d (to repeat the plan: -faults.seed=%[1]d)", s)
	return s
}

// All faults at once: each period is complete exactly once, and no lower token commits after a higher one.
func TestFaultsThatComeTogetherLoseNothing(t *testing.T) {
	t.Parallel()
	plan := mixed(seed(t), workers)
	t.Log("the plan:", printed(plan))
	w := newWorld(t, 60, 150*time.Millisecond)
	tracks := map[int][]fault{}
	for _, f := range plan {
		tracks[f.track] = append(tracks[f.track], f)
	}
	begin, stopped := time.Now(), 0
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, fs := range tracks {
		wg.Go(func() {
			for _, f := range fs {
				pause(time.Until(begin.Add(f.at)))
				_, err := w.hit(f)
				if err != nil && !errors.Is(err, errMissed) {
					t.Errorf("%s: %v", f, err)
				}
				mu.Lock()
				if err == nil && f.kind.name == "holder stopped" {
					stopped++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if stopped == 0 { // the others were in its way
		_, err := w.surely(kindNamed("holder stopped").fault(rand.New(rand.NewPCG(0, 0)), 0, 0))
		w.must(err)
	}
	w.settle()
	if w.seen.Takeovers < 5 || w.seen.Refusals == 0 {
		t.Errorf("inconclusive: %d takeovers and %d refusals", w.seen.Takeovers, w.seen.Refusals)
	}
}

func kindNamed(name string) *kind {
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i]
		}
	}
	return nil
}

// Each fault by itself. Which one is today's, unless all are asked for.
func TestAFaultIsRecoveredFromAndLosesNothing(t *testing.T) {
	t.Parallel()
	seed := seed(t)
	if *writeFlag == "" {
		once(t, seed, &kinds[seed%uint64(len(kinds))], 2)
		return
	}
	var results []result
	for i := range kinds {
		t.Run(kinds[i].name, func(t *testing.T) { results = append(results, once(t, seed, &kinds[i], 5)) })
	}
	if !t.Failed() {
		write(t, *writeFlag, seed, results)
	}
}

// result is how long a kind of fault took to be recovered from.
type result struct {
	kind     *kind
	lasted   []time.Duration
	recovery []time.Duration
	seen     faults.Seen
}

// once lets one kind of fault happen some times, in a world of its own.
func once(t *testing.T, seed uint64, k *kind, times int) result {
	t.Helper()
	r, out := rand.New(rand.NewPCG(seed, 1)), result{kind: k}
	var plan []fault
	for n := range times {
		track := -1
		if !k.server {
			track = r.IntN(workers)
		}
		plan = append(plan, k.fault(r, n, track))
	}
	t.Log("the plan:", printed(plan))
	w := newWorld(t, 20+16*times, 150*time.Millisecond)
	for _, f := range plan {
		if w.standby == nil {
			w.follow()
		}
		s, err := w.surely(f)
		w.must(err)
		took := w.recovery(s)
		t.Logf("%s lasted %d ms; recovered after %d ms", k.name, s.to.Sub(s.from).Milliseconds(), took.Milliseconds())
		out.lasted, out.recovery = append(out.lasted, s.to.Sub(s.from)), append(out.recovery, took)
	}
	if worst := slices.Max(out.recovery); worst < k.bites {
		t.Errorf("inconclusive: the worst recovery took %s, so the fault has hit nothing", worst)
	}
	w.settle()
	if w.seen.Runs != w.ledger.Owed() && k.name == "wrong clock" {
		t.Errorf("%d runs for %d periods: a clock that is set must not cost a run", w.seen.Runs, w.ledger.Owed())
	}
	out.seen = w.seen
	return out
}
