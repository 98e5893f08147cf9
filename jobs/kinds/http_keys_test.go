package kinds_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/faults"
	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/jobs/kinds"
)

// tell sends a request to the receiver that the database names.
func tell(ctx context.Context, pool *pgxpool.Pool) ([]jobs.Job, error) {
	var url string
	if err := pool.QueryRow(ctx, `select url from receiver`).Scan(&url); err != nil {
		return nil, err
	}
	fn, err := kinds.HTTP{URL: kinds.Plain(url)}.Func()
	return []jobs.Job{{Name: "x", Schedule: "0 0 * * *", Start: yesterday(), TTL: time.Second, RetryDelay: time.Second, Func: fn}}, err
}

func (x *receiver) keys() (keys []string) {
	for _, q := range x.requests() {
		keys = append(keys, q.Header.Get("Idempotency-Key"))
	}
	return keys
}

// What a receiver sees over a kill, retries and reruns: one key for what must happen once, and another one only when a
// person asks for a repetition, or when it has definitely refused.
func TestAReceiverTellsRepetitionsByTheKeyOverKillsRefusalsAndReruns(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := pgtest.Open(t, url)
	free := make(chan struct{})
	t.Cleanup(func() { close(free) })
	codes := []int{0, 200, 422, 422, 200, 404, 200}
	x := receive(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 0 { // its worker is killed while it waits
			select {
			case <-free:
			case <-r.Context().Done():
			}
			return
		}
		w.WriteHeader(codes[min(n, len(codes)-1)])
	})
	exec(t, pool, `create table receiver as select $1::text as url`, x.URL)
	w := faults.Spawn(t, "tell", url)
	pgtest.Eventually(t, 40*time.Second, "a request", func() bool { return len(x.requests()) == 1 })
	w.Kill(t)
	faults.Spawn(t, "tell", url)
	ends := func(state string) (key string) {
		t.Helper()
		until(t, pool, 1, `select count(*) from (select state from pawl.periods order by revision desc limit 1) p where state = $1`, state)
		if err := pool.QueryRow(t.Context(), `select key from pawl.periods limit 1`).Scan(&key); err != nil {
			t.Fatal(err)
		}
		return key
	}
	rerun := func(repeat bool) {
		t.Helper()
		key := ends("complete")
		if _, err := jobs.Rerun(t.Context(), pool, "x", key, jobs.RerunConfig{Actor: "ann", Reason: "late", RepeatEffects: repeat}); err != nil {
			t.Fatal(err)
		}
	}
	retry := func() {
		t.Helper()
		if err := jobs.Retry(t.Context(), pool, "x", ends("dead"), "ann"); err != nil {
			t.Fatal(err)
		}
	}
	k := "x:" + ends("complete")
	rerun(false) // sends nothing
	ends("complete")
	rerun(true) // refused, and so is the retry
	retry()
	retry()
	rerun(false) // goes by the key that was taken at last, and sends nothing
	ends("complete")
	exec(t, pool, `delete from pawl.checkpoints`) // which are pruned long before the periods
	rerun(true)
	retry()
	ends("complete")
	want := []string{k, k, k + ":rev-3", k + ":rev-3:try-2", k + ":rev-3:try-3", k + ":rev-5", k + ":rev-5:try-2"}
	if got := x.keys(); !slices.Equal(got, want) {
		t.Errorf("keys\n%q, want\n%q", got, want)
	}
}

// The refusal is written under the token, or not at all: an old holder can't spend its successor's key.
func TestOnlyTheHolderSpendsAKey(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	x := receive(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 0 {
			force(t, pool) // the lease is gone when the refusal arrives
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	})
	j := job(t, kinds.HTTP{URL: kinds.Plain(x.URL)})
	j.TTL = time.Minute // no beat tells of the loss
	start(t, jobs.Config{Pool: pool}, j)
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'complete'`)
	if got := x.keys(); len(got) != 2 || got[0] != got[1] {
		t.Errorf("keys %q", got)
	}
	if n := count(t, pool, `select count(*) from pawl.effects where state = 'failed' or try > 1`); n != 0 {
		t.Error("an old holder has spent the key")
	}
}
