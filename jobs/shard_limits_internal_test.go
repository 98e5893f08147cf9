package jobs

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// While shards run nobody has the lock of their period: who takes it by hand keeps the reduction waiting, and nothing else.
func TestTheLockOfAPeriodIsFreeWhileItsShardsRun(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{Shards: 1})[0]
	r.fan(t, "0")
	byHand, err := r.repo.Acquire(t.Context(), "L", time.Minute)
	if err != nil {
		t.Fatalf("the lock is held: %v", err)
	}
	run := r.beginOn(t, "L#0")
	if err := run.Tx(t.Context(), func(pgx.Tx) error { return nil }); err != nil {
		t.Errorf("a write of the shard beside it: %v", err)
	}
	r.endShard(t, run, stateComplete)
	wantStates(t, pool, key, "open 0:complete")
	if r.beginOn(t, "L") != nil {
		t.Error("the reduction runs beside who has the lock")
	}
	if err := r.repo.Release(t.Context(), byHand); err != nil {
		t.Fatal(err)
	}
	if r.beginOn(t, "L") == nil {
		t.Error("the reduction doesn't run afterwards")
	}
}

// What a run of the whole period has checkpointed is nothing to its shards.
func TestAPeriodThatWasBegunWithoutShardsIsBegunAnewInShards(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{})[0]
	run := r.beginOn(t, "L")
	if err := run.Tx(t.Context(), func(tx pgx.Tx) error { return run.Checkpoint(t.Context(), tx, 7) }); err != nil {
		t.Fatal(err)
	}
	r.mustEndAs(t, run, stateFailed)
	again := r.beginOn(t, "L")
	again.job.Shards = 1
	if err := again.work(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantStates(t, pool, key, "running 0:open")
	var mark int
	if ok, err := r.beginOn(t, "L#0").Resume(&mark); ok || err != nil {
		t.Errorf("the shard resumes at %d, %v", mark, err)
	}
}
