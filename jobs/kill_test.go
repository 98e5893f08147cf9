package jobs_test

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/faults"
	"pawl/internal/pgtest"
)

// Three workers are killed, stopped past their leases and cut off, and yet each period is complete exactly once.
func TestKilledStoppedAndCutOffWorkersCompleteEachPeriodOnceInTokenOrder(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := pgtest.Open(t, url)
	ledger := faults.Ledger{Jobs: 4, Periods: 50}
	if err := ledger.Create(t.Context(), pool, 150*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	storm(t, url, pool, ledger)

	until(t, pool, ledger.Owed(), faults.CompleteSQL)
	wrong, err := ledger.Violations(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range wrong {
		t.Error(what)
	}
	s := seen(t, pool, ledger)
	t.Logf("takeovers %d, refusals %d, runs %d", s.Takeovers, s.Refusals, s.Runs)
	if s.Takeovers < 10 || s.Refusals == 0 {
		t.Errorf("inconclusive: %d takeovers and %d refusals", s.Takeovers, s.Refusals)
	}
	// The check itself must be able to fail.
	if n, err := ledger.Deliberate(t.Context(), pool); err != nil || n != 1 {
		t.Errorf("the deliberate violation is counted %d times, want once; %v", n, err)
	}
}

func seen(t *testing.T, pool *pgxpool.Pool, ledger faults.Ledger) faults.Seen {
	t.Helper()
	s, err := ledger.Seen(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// storm runs three workers and lets faults rain until all is done.
func storm(t *testing.T, url string, pool *pgxpool.Pool, ledger faults.Ledger) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	spawn := func() *faults.Process { return faults.Spawn(t, "ledger", url) }
	workers := []*faults.Process{spawn(), spawn(), spawn()}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline, next := time.Now().Add(3*time.Minute), time.Now().Add(time.Second)
	woken := map[int]time.Time{}
	for count(t, pool, faults.CompleteSQL) < ledger.Owed() {
		<-tick.C
		for i, at := range woken {
			if time.Now().After(at) {
				workers[i].Signal(t, syscall.SIGCONT)
				delete(woken, i)
			}
		}
		if s := seen(t, pool, ledger); s.Takeovers >= 14 && s.Refusals >= 3 { // enough has gone wrong: now the work may get done
			if err := ledger.Pace(t.Context(), pool, 20*time.Millisecond); err != nil {
				t.Log(err)
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the periods are not complete after three minutes")
		}
		if time.Now().Before(next) {
			continue
		}
		next = time.Now().Add(time.Duration(100+r.IntN(200)) * time.Millisecond)
		i := r.IntN(len(workers))
		switch _, stopped := woken[i]; {
		case r.IntN(3) == 0:
			if _, err := pool.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
				where datname = current_database() and pid <> pg_backend_pid() and application_name <> '' order by random() limit 1`); err != nil {
				t.Log(err)
			}
		case stopped || len(woken) > 0:
		case r.IntN(2) == 0:
			workers[i].Signal(t, syscall.SIGSTOP)
			woken[i] = time.Now().Add(faults.TTL + time.Duration(500+r.IntN(700))*time.Millisecond)
		default:
			workers[i].Kill(t)
			workers[i] = spawn()
		}
	}
	for i := range woken {
		workers[i].Signal(t, syscall.SIGCONT)
	}
}
