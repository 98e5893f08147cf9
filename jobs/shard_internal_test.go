package jobs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
)

// beginOn starts what may run under a lock, or nil.
func (r *Runner) beginOn(t *testing.T, lock string) *Run {
	t.Helper()
	s, err := r.start(t.Context(), []startRequest{{lock, uuid.New(), exec(t, r.cfg.Pool, `select coalesce(max(id), 0) from pawl.river_job where args ->> 'lock' = $1`, lock)}})
	if err != nil {
		t.Fatal(err)
	}
	if s[0].run == nil {
		return nil
	}
	return r.keep(t, s[0].run)
}

// fan starts the oldest period of L and fans it out.
func (r *Runner) fan(t *testing.T, keys ...string) *Run {
	t.Helper()
	run := r.beginOn(t, "L")
	if run == nil {
		t.Fatal("no period may run")
	}
	if err := run.fanOut(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	return run
}

// shard runs one shard to an outcome, and settles as its process does.
func (r *Runner) shard(t *testing.T, key, outcome string) {
	t.Helper()
	run := r.beginOn(t, "L#"+key)
	if run == nil {
		t.Fatalf("shard %s may not run", key)
	}
	r.endShard(t, run, outcome)
}

func (r *Runner) endShard(t *testing.T, run *Run, outcome string) {
	t.Helper()
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: outcome}}); err != nil || !ok[0] {
		t.Fatalf("end of shard %s = %v, %v", run.Shard.Key, ok, err)
	}
	r.trySettle(t.Context(), run)
}

// states are those of a period and its shards: "running 0:complete 1:open".
func states(t *testing.T, pool *pgxpool.Pool, key string) string {
	t.Helper()
	return strings.Join(texts(t, pool, `select coalesce(shard || ':', '') || state from pawl.periods where key = $1 or parent = $1 order by revision, shard_no nulls first`, key), " ")
}

func wantStates(t *testing.T, pool *pgxpool.Pool, key, want string) {
	t.Helper()
	if got := states(t, pool, key); got != want {
		t.Fatalf("states of %s: %q, want %q", key, got, want)
	}
}

func TestAPeriodGoesOverItsShardsToItsReduction(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{Shards: 3})[0]
	run := r.fan(t, "0", "1", "2")
	wantStates(t, pool, key, "running 0:open 1:open 2:open")
	if n := exec(t, pool, `select count(*) from pawl.lanes n join pawl.river_job j on j.id = n.delivery where n.lock like 'L#%' and j.state = 'available'`); n != 3 {
		t.Errorf("%d deliveries of shards, want 3", n)
	}
	if n := exec(t, pool, `select count(*) from pawl.locks where name = 'L' and grant_id is null`); n != 1 {
		t.Error("the run that has fanned out holds the lock still")
	}
	first := r.beginOn(t, "L#1")
	if first == nil || first.Job != "j" || first.Period.Key != key || first.Shard.Key != "1" || first.Attempt != 1 {
		t.Fatalf("run of a shard = %+v", first)
	}
	if err := first.loadShard(t.Context()); err != nil || first.Shard != (Shard{"1", 1, 3}) {
		t.Errorf("shard = %+v, %v", first.Shard, err)
	}
	r.endShard(t, first, stateComplete)
	r.shard(t, "0", stateComplete)
	wantStates(t, pool, key, "running 0:complete 1:complete 2:open")
	if r.beginOn(t, "L") != nil {
		t.Fatal("the period runs before its last shard has")
	}
	r.shard(t, "2", stateSkipped)
	wantStates(t, pool, key, "open 0:complete 1:complete 2:skipped")
	if n := exec(t, pool, ruleSQL); n != 1 {
		t.Error("the period that is to be reduced has no delivery")
	}
	last := r.beginOn(t, "L")
	if last == nil || last.Attempt != 1 || last.Shard.Key != "" || last.token.Seq <= run.token.Seq {
		t.Fatalf("the run that reduces = %+v", last)
	}
	var reduced fence.Token
	last.job.Reduce = func(_ context.Context, run *Run, tx pgx.Tx) error { reduced = run.Token(); return nil }
	if err := last.work(t.Context()); err != nil || reduced != last.token {
		t.Fatalf("work = %v, reduced under %v", err, reduced)
	}
	wantStates(t, pool, key, "complete 0:complete 1:complete 2:skipped")
}

// No two periods of a lock are worked at once, however each was cut: a job may have another number of shards by then.
func TestTheNextPeriodWaitsForAllShards(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 2, Job{Shards: 2})
	r.fan(t, "0", "1")
	if n := exec(t, pool, ruleSQL); n != 0 {
		t.Error("the next period is delivered while the shards of this one are open")
	}
	if run := r.beginOn(t, "L"); run != nil {
		t.Fatalf("%s starts while the shards of %s are open", run.Period.Key, keys[0])
	}
	if locks := texts(t, pool, backstopListSQL); slices.Contains(locks, "L") {
		t.Error("the backstop takes the next period for one that was forgotten")
	}
	r.shard(t, "0", stateComplete)
	if r.beginOn(t, "L") != nil {
		t.Fatal("the next period starts before the last shard is complete")
	}
	r.shard(t, "1", stateComplete)
	last := r.beginOn(t, "L")
	if last == nil || last.Period.Key != keys[0] {
		t.Fatalf("after the shards %+v runs, want the reduction of %s", last, keys[0])
	}
	if ok, err := r.end(t.Context(), []endRequest{{run: last, outcome: stateComplete}}); err != nil || !ok[0] {
		t.Fatal(ok, err)
	}
	if next := r.beginOn(t, "L"); next == nil || next.Period.Key != keys[1] {
		t.Errorf("then %+v runs, want %s", next, keys[1])
	}
}

// A process that dies between the end of a shard and the look at its period strands nothing.
func TestTheBackstopSettlesWhatNobodyHasSettled(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{Shards: 2})[0]
	r.fan(t, "0", "1")
	a, b := r.beginOn(t, "L#0"), r.beginOn(t, "L#1")
	if ok, err := r.end(t.Context(), []endRequest{{run: a, outcome: stateComplete}, {run: b, outcome: stateComplete}}); err != nil || !ok[0] || !ok[1] {
		t.Fatal(ok, err)
	}
	wantStates(t, pool, key, "running 0:complete 1:complete")
	if err := r.settleAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantStates(t, pool, key, "open 0:complete 1:complete")
	for range 2 { // whoever comes later finds it done
		r.trySettle(t.Context(), a)
	}
	wantStates(t, pool, key, "open 0:complete 1:complete")
	if n := exec(t, pool, ruleSQL); n != 1 {
		t.Errorf("%d deliveries, want 1", n)
	}
}

// Two shards that end in the same moment don't see each other's end; whoever commits last does.
func TestTheLastOfTwoShardsThatEndTogetherSettles(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{Shards: 2})[0]
	r.fan(t, "0", "1")
	a, b := r.beginOn(t, "L#0"), r.beginOn(t, "L#1")
	slow, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Rollback(context.Background())
	if _, err := slow.Exec(t.Context(), endSQL, endArgs([]endRequest{{run: b, outcome: stateComplete}}, true, r.mostWait)...); err != nil {
		t.Fatal(err)
	}
	r.endShard(t, a, stateComplete) // it sees b running still
	wantStates(t, pool, key, "running 0:complete 1:running")
	if err := slow.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.trySettle(t.Context(), b)
	wantStates(t, pool, key, "open 0:complete 1:complete")
}

func TestADeadShardMakesItsPeriodDeadWhenTheOthersHaveEnded(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 2, Job{Shards: 3, MaxRetries: NoRetries})
	key := keys[0]
	r.fan(t, "0", "1", "2")
	r.shard(t, "1", stateFailed)
	wantStates(t, pool, key, "running 0:open 1:dead 2:open")
	if n := exec(t, pool, `select count(*) from pawl.events where kind = 'dead' and period = $1`, key+"#1"); n != 1 {
		t.Error("nobody is told of the dead shard at once")
	}
	if r.beginOn(t, "L") != nil {
		t.Fatal("something runs beside the shards that are open")
	}
	r.shard(t, "0", stateComplete)
	r.shard(t, "2", stateUncertain)
	wantStates(t, pool, key, "dead 0:complete 1:dead 2:dead")
	if got := texts(t, pool, `select reason || '; ' || blocked_by from pawl.periods where key = $1`, key); got[0] != "shard; j "+key+"#1, j "+key+"#2" {
		t.Errorf("the dead period says %q", got)
	}
	if n := exec(t, pool, `select count(*) from pawl.events where kind = 'dead' and period = $1 and detail ->> 'blocked_by' like '%#1%'`, key); n != 1 {
		t.Error("the event of the dead period doesn't say which shard")
	}

	// The next period goes on, and the retry waits for its turn under the lock of both.
	r.fan(t, "0", "1", "2")
	if err := Retry(t.Context(), pool, "j", key, "ann"); err != nil {
		t.Fatal(err)
	}
	wantStates(t, pool, key, "open 0:complete 1:dead 2:dead")
	if r.beginOn(t, "L") != nil || r.beginOn(t, "L#1").Period.Key != keys[1] {
		t.Fatal("the retried period runs beside the next one's shards")
	}
}

func TestARetryOpensOnlyTheShardsThatAreNotComplete(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{Shards: 2, MaxRetries: NoRetries})[0]
	r.fan(t, "0", "1")
	r.shard(t, "0", stateComplete)
	run := r.beginOn(t, "L#1")
	err := run.Tx(t.Context(), func(tx pgx.Tx) error { return run.Checkpoint(t.Context(), tx, 7) })
	if err != nil {
		t.Fatal(err)
	}
	r.endShard(t, run, stateFailed)
	wantStates(t, pool, key, "dead 0:complete 1:dead")
	if err := Retry(t.Context(), pool, "j", key, "ann"); err != nil {
		t.Fatal(err)
	}
	again := r.beginOn(t, "L")
	again.job.Shards = 5 // the job is another one by now: what was begun is finished as it was cut
	if err := again.work(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantStates(t, pool, key, "running 0:complete 1:open")
	run = r.beginOn(t, "L#1")
	var mark int
	if ok, err := run.Resume(&mark); !ok || err != nil || mark != 7 || run.Attempt != 2 {
		t.Errorf("the retried shard resumes at %d, %v, %v in run %d", mark, ok, err, run.Attempt)
	}
	r.endShard(t, run, stateComplete)
	last := r.beginOn(t, "L")
	if err := last.work(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := Rerun(t.Context(), pool, "j", key, RerunConfig{Actor: "ann", Reason: "as it is cut now"}); err != nil {
		t.Fatal(err)
	}
	rerun := r.beginOn(t, "L")
	rerun.job.Shards = 5
	if err := rerun.work(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where parent = $1 and revision = 2 and state = 'open'`, key); n != 5 {
		t.Errorf("the rerun has %d shards, want 5", n)
	}
}

func TestAShardCannotCompleteOnceItsPeriodIsCancelled(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 2, Job{Shards: 3})
	r.fan(t, "0", "1", "2")
	r.shard(t, "0", stateComplete)
	run := r.beginOn(t, "L#1")
	if err := Cancel(t.Context(), pool, "j", keys[0], "ann", "wrong input"); err != nil {
		t.Fatal(err)
	}
	wantStates(t, pool, keys[0], "cancelled 0:complete 1:cancelled 2:cancelled")
	if err := run.Tx(t.Context(), func(pgx.Tx) error { return nil }); !errors.Is(err, fence.ErrNotHeld) && !errors.Is(err, fence.ErrStale) {
		t.Errorf("a write of the shard after the cancellation = %v", err)
	}
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}}); err != nil || ok[0] {
		t.Errorf("the end of the shard = %v, %v, want a refusal", ok, err)
	}
	r.trySettle(t.Context(), run)
	wantStates(t, pool, keys[0], "cancelled 0:complete 1:cancelled 2:cancelled")
	r.fan(t, "0", "1", "2") // the next period
	if r.beginOn(t, "L#1") != nil {
		t.Error("the next period's shard starts before the old one's run is swept")
	}
	if _, err := r.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next := r.beginOn(t, "L#1"); next == nil || next.Period.Key != keys[1] {
		t.Errorf("after the sweep %+v runs, want the shard of %s", next, keys[1])
	}
}
