package jobs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/lockrepo"
)

// Whichever of the two commits first, what it says stays.
func TestACancellationWaitsForAShardThatCompletes(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{Shards: 2})[0]
	r.fan(t, "0", "1")
	run := r.beginOn(t, "L#1")
	inside, cancelled := make(chan struct{}), make(chan error, 1)
	go func() {
		<-inside
		cancelled <- Cancel(context.WithoutCancel(t.Context()), pool, "j", key, "ann", "wrong input")
	}()
	err := run.Complete(t.Context(), func(tx pgx.Tx) error {
		// The lock row and the lane, as the end takes them a moment later.
		exec(t, tx, `select 1 from pawl.locks where name = 'L#1' for no key update`)
		close(inside)
		waitForLock(t, pool)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-cancelled; err != nil {
		t.Fatal(err)
	}
	wantStates(t, pool, key, "cancelled 0:cancelled 1:complete")
}

// A cancellation that comes while the period is being fanned out finds the shards.
func TestACancellationFindsShardsThatWereOpenedMeanwhile(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{Shards: 2})[0]
	run := r.beginOn(t, "L")
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if n := exec(t, tx, fanOutSQL, run.ID.String(), "L", run.token.Seq, []string{"0", "1"}, 6, 10000); n != 2 {
		t.Fatalf("%d shards are open", n)
	}
	cancelled := make(chan error, 1)
	go func() { cancelled <- Cancel(context.WithoutCancel(t.Context()), pool, "j", key, "ann", "wrong input") }()
	waitForLock(t, pool)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-cancelled; err != nil {
		t.Fatal(err)
	}
	wantStates(t, pool, key, "cancelled 0:cancelled 1:cancelled")
}

// waitForLock returns when somebody waits for a row.
func waitForLock(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		if exec(t, pool, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) > 0 {
			return
		}
		<-tick.C
	}
	t.Error("nobody waits for a row")
}

func TestAnOldRunCannotFanOut(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{Shards: 2})[0]
	old := r.beginOn(t, "L")
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = 'L' returning 1`)
	if err := old.fanOut(t.Context(), []string{"0", "1"}); !errors.Is(err, fence.ErrNotHeld) {
		t.Errorf("fan out with a lease that has ended = %v", err)
	}
	if _, err := r.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.fan(t, "0")
	if n, err := old.sendFanOut(t.Context(), []string{"0", "1"}); err != nil || n != nil {
		t.Errorf("fan out of the old run beside its successor's = %v, %v", n, err)
	}
	wantStates(t, pool, key, "running 0:open")
	if n := exec(t, pool, `select count(*) from pawl.refusals where statement = 'fan out'`); n != 1 {
		t.Errorf("%d refusals are on record, want 1", n)
	}
}

// A person acts on a period; its shards follow.
func TestAShardIsNothingToActOn(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{Shards: 2, MaxRetries: NoRetries})[0]
	r.fan(t, "0", "1")
	r.shard(t, "0", stateFailed)
	for what, err := range map[string]error{
		"cancel": Cancel(t.Context(), pool, "j", key+"#0", "ann", "why not"),
		"retry":  Retry(t.Context(), pool, "j", key+"#0", "ann"),
	} {
		if !errors.Is(err, ErrUnknownPeriod) || !strings.Contains(err.Error(), "is a shard of j "+key) {
			t.Errorf("%s of a shard = %v", what, err)
		}
	}
	if _, err := Trigger(t.Context(), pool, "j", TriggerConfig{Actor: "ann"}); !errors.Is(err, ErrRunning) {
		t.Errorf("trigger while the shards run = %v, want ErrRunning", err)
	}
}

func TestAPauseLetsShardsFinishAndNothingElseStart(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 2, Job{Shards: 2})
	r.fan(t, "0", "1")
	if err := Pause(t.Context(), pool, "j", PauseConfig{Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Trigger(t.Context(), pool, "j", TriggerConfig{Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	if r.beginOn(t, "L") != nil {
		t.Fatal("what a person triggers starts beside the shards")
	}
	r.shard(t, "0", stateComplete)
	r.shard(t, "1", stateComplete)
	if last := r.beginOn(t, "L"); last == nil || last.Period.Key != keys[0] {
		t.Fatalf("%+v runs, want the reduction", last)
	}
	if err := errors.Join(r.backstop(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func TestARetiredJobsShardsAreCancelledAndComeBack(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{Shards: 3})[0]
	r.fan(t, "0", "1", "2")
	run := r.beginOn(t, "L#1")
	if _, err := Retire(t.Context(), pool, "j", "ann", "not needed"); err != nil {
		t.Fatal(err)
	}
	wantStates(t, pool, key, "running 0:cancelled 1:running 2:cancelled")
	if err := r.settleAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantStates(t, pool, key, "running 0:cancelled 1:running 2:cancelled")
	exec(t, pool, `update pawl.schedules set retired_at = null where job = 'j' returning 1`) // it comes back meanwhile
	r.endShard(t, run, stateComplete)
	wantStates(t, pool, key, "open 0:cancelled 1:complete 2:cancelled")
	if err := r.beginOn(t, "L").work(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantStates(t, pool, key, "running 0:open 1:complete 2:open")
	if _, err := Retire(t.Context(), pool, "j", "ann", "not needed"); err != nil {
		t.Fatal(err)
	}
	if err := r.settleAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantStates(t, pool, key, "cancelled 0:cancelled 1:complete 2:cancelled")
}

func TestShardsGoAlongWhenTheirJobIsRenamed(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{Shards: 2})[0]
	r.fan(t, "0", "1")
	r.shard(t, "0", stateComplete)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if n := exec(t, tx, bringOpenSQL, "j", "k"); n != 3 {
		t.Errorf("%d rows go along, want the period and both shards", n)
	}
	if n := exec(t, tx, `select count(*) from pawl.periods where job = 'k' and (key = $1 or parent = $1)`, key); n != 3 {
		t.Errorf("%d rows have the new name, want 3", n)
	}
}

func TestShardsArePrunedAfterTheirPeriod(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 2, Job{Shards: 2})
	for range 2 {
		r.fan(t, "0", "1")
		r.shard(t, "0", stateComplete)
		r.shard(t, "1", stateComplete)
		if err := r.beginOn(t, "L").work(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, pool, `with o as (update pawl.periods set ended_at = ended_at - interval '500 days', scheduled_at = scheduled_at - interval '500 days' where key = $1 or parent = $1 returning 1) select count(*) from o`, keys[0])
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	for sql, want := range map[string]int64{prunePeriodsSQL: 0, pruneShardsSQL: 2} {
		if n, err := pruneSome(t.Context(), tx, sql, "j"); err != nil || n != want {
			t.Errorf("%d rows are pruned, %v, want %d", n, err, want)
		}
	}
}

func TestAShardOfAJobThatHasNoneAnyMoreIsNotTakenForThePeriod(t *testing.T) {
	t.Parallel()
	r, _ := opened(t)
	r.chain(t, 1, Job{Shards: 2})
	r.fan(t, "0", "1")
	run := r.beginOn(t, "L#0")
	run.job.Shards, run.job.Func = 0, func(context.Context, *Run) error {
		t.Error("the whole period's function is called for a shard")
		return nil
	}
	if err := run.work(t.Context()); !errors.Is(err, ErrNoShards) {
		t.Errorf("work = %v, want ErrNoShards", err)
	}
}

// In a rolling deploy a version without shards may take the run that is to reduce what the shards have done.
func TestAPeriodThatWasFannedOutIsNotWorkedWholeAfterwards(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.chain(t, 2, Job{Shards: 1})
	whole := func(run *Run) {
		t.Helper()
		run.job.Shards, run.job.Func = 0, func(context.Context, *Run) error {
			t.Error("what the shards have done is done again")
			return nil
		}
		if err := run.work(t.Context()); !errors.Is(err, ErrNoShards) {
			t.Errorf("work = %v, want ErrNoShards", err)
		}
	}
	r.fan(t, "0")
	r.shard(t, "0", stateComplete)
	started := r.beginOn(t, "L")
	whole(started)
	if found, err := r.findRun(t.Context(), started.ID, "L", lockrepo.Now()); err != nil || found == nil || !found.reduces {
		t.Errorf("the run that was asked for again = %+v, %v", found, err)
	}
	if ok, err := r.end(t.Context(), []endRequest{{run: started, outcome: stateFailed}}); err != nil || !ok[0] {
		t.Fatal(ok, err)
	}
	// By hand-over too: another period of the lock comes first, and is followed by it.
	exec(t, pool, `with a as (update pawl.periods set priority = 1 where shards is not null returning 1) select count(*) from a`)
	next, err := r.handover(t.Context(), []*Run{r.keep(t, r.beginOn(t, "L"))})
	if err != nil || next[0] == nil {
		t.Fatal(next, err)
	}
	whole(r.keep(t, next[0]))
}

func TestShardKeysAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		job  Job
		keys []string
		want string
	}{
		"a separator": {keys: []string{"a#b"}, want: `ShardKeys "a#b"`},
		"twice":       {keys: []string{"a", "b", "a"}, want: `list it once`},
		"empty":       {keys: []string{""}, want: `ShardKeys ""`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := &Run{Job: "j", job: Job{ShardKeys: func(context.Context, *Run) ([]string, error) { return c.keys, nil }}}
			if _, err := run.shardKeys(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("shardKeys = %v, want %s", err, c.want)
			}
		})
	}
	run := &Run{job: Job{Shards: 11}}
	if keys, err := run.shardKeys(t.Context()); err != nil || len(keys) != 11 || keys[10] != "10" || !slices.IsSorted(keys[:10]) {
		t.Errorf("shardKeys = %v, %v", keys, err)
	}
	for _, j := range []Job{{Shards: -1}, {Shards: 1, ShardKeys: func(context.Context, *Run) ([]string, error) { return nil, nil }}, {Shards: 2, Lock: strings.Repeat("x", 200)}} {
		j.Name, j.Schedule, j.Func = "j", "@daily", func(context.Context, *Run) error { return nil }
		var bad *ConfigError
		if err := j.Check(); !errors.As(err, &bad) {
			t.Errorf("Check of %d shards, lock of %d bytes = %v", j.Shards, len(j.Lock), err)
		}
	}
}
