package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

func TestPeriodsRunInShardsOnAllReplicasAndAreReducedOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), `create table part (day text, shard text, n int, holder text, at timestamptz default clock_timestamp(), unique (day, shard));
	  create table total (day text primary key, parts int, at timestamptz default clock_timestamp())`); err != nil {
		t.Fatal(err)
	}
	job := jobs.Job{
		Name: "settle", Schedule: "@daily", Start: daysAgo(3), Shards: 5,
		Func: func(ctx context.Context, run *jobs.Run) error {
			if run.Shard.Index == 3 && run.Attempt == 1 {
				return &jobs.RetryError{After: time.Millisecond, Err: errors.New("not at first")}
			}
			run.Progress(int64(run.Shard.Index), 10)
			return run.Complete(ctx, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `insert into part (day, shard, n, holder) values ($1, $2, $3, $4)`, run.Period.Key, run.Shard.Key, run.Shard.Count, run.Holder())
				return err
			})
		},
		Reduce: func(ctx context.Context, run *jobs.Run, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `insert into total (day, parts) select $1, count(*) from part where day = $1`, run.Period.Key)
			return err
		},
		RetryDelay: time.Second, RetryMaxDelay: time.Second,
	}
	for _, name := range []string{"one", "two"} {
		start(t, jobs.Config{Pool: pool, Concurrency: 1, Holder: name}, job)
	}
	until(t, pool, 3, `select count(*) from pawl.periods where job = $1 and parent is null and state = 'complete'`, "settle")
	for what, sql := range map[string]string{
		"days that aren't reduced from all their parts": `select count(*) from total where parts <> 5`,
		"parts that don't know their number":            `select count(*) from part where n <> 5`,
		"days that overlap another one":                 `select count(*) from part a join part b on a.day < b.day and a.at > b.at`,
		"days reduced before their parts":               `select count(*) from part join total using (day) where part.at > total.at`,
		"totals that don't share their completion's transaction": `
			select count(*) from total t join pawl.periods p on p.key = t.day and p.job = 'settle' where t.xmin <> p.xmin`,
		"locks that are held": `select count(*) from pawl.locks where grant_id is not null`,
		"runs that are live":  `select count(*) from pawl.runs where ended_at is null`,
	} {
		if n := count(t, pool, sql); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	if n := count(t, pool, `select count(*) from part`); n != 15 {
		t.Errorf("%d parts, want 15", n)
	}
	if n := count(t, pool, `select count(distinct holder) from part`); n != 2 {
		t.Errorf("%d replicas have worked, want both", n)
	}
	if n := count(t, pool, `select count(*) from pawl.locks where name like 'job:settle#%'`); n != 5 {
		t.Errorf("%d locks of shards, want 5", n)
	}
	h := jobs.NewHistory(pool)
	key := daysAgo(1).Format(time.DateOnly)
	list, err := h.Shards(t.Context(), "settle", key, 1)
	if err != nil {
		t.Fatal(err)
	}
	if periods, err := h.Periods(t.Context(), jobs.PeriodFilter{Job: "settle"}); err != nil || len(periods) != 3 {
		t.Errorf("%d periods are listed, %v, want 3 without shards", len(periods), err)
	}
	if len(list.Shards) != 5 || list.Done != 10 || list.Total != 50 || list.Complete != 5 {
		t.Errorf("shards of %s = %+v", key, list)
	}
	for i, s := range list.Shards {
		if s.Index != i || s.State != "complete" || s.Lock != "job:settle#"+s.Shard || s.Attempts == 0 {
			t.Errorf("shard %d = %+v", i, s)
		}
	}
}

func TestAJobWithoutShardsToRunIsReducedAtOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reduced := make(chan string, 10)
	job := jobs.Job{
		Name: "settle", Schedule: "@daily", Start: daysAgo(1),
		ShardKeys: func(context.Context, *jobs.Run) ([]string, error) { return nil, nil },
		Func:      func(context.Context, *jobs.Run) error { return errors.New("there is no shard") },
		Reduce:    func(_ context.Context, run *jobs.Run, _ pgx.Tx) error { reduced <- run.Period.Key; return nil },
	}
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, completeSQL, "settle")
	if len(reduced) != 1 {
		t.Errorf("reduced %d times, want once", len(reduced))
	}
}

// An effect is the period's, whichever shard makes it: cut in another way it must not be made again.
func TestAnEffectIsMadeOnceHoweverAPeriodIsCut(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	cut := func(_ context.Context, run *jobs.Run) ([]string, error) {
		if run.Revision > 1 {
			return []string{"all"}, nil
		}
		return []string{"acme", "bolt"}, nil
	}
	job := once("payout", func(ctx context.Context, run *jobs.Run) error {
		for _, m := range []string{"acme", "bolt"} {
			if run.Shard.Key != m && run.Shard.Key != "all" {
				continue
			}
			if _, err := run.Effect(ctx, m, 100, func(_ context.Context, key string) (any, error) { return r.pay(key, 100) }); err != nil {
				return err
			}
		}
		return nil
	})
	job.ShardKeys = cut
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, `select count(*) from pawl.periods where job = $1 and parent is null and state = 'complete'`, "payout")
	key := daysAgo(1).AddDate(0, 0, 1).Format(time.DateOnly)
	for i, c := range []jobs.RerunConfig{{Actor: "ann", Reason: "cut anew"}, {Actor: "ann", Reason: "and paid anew", RepeatEffects: true}} {
		if _, err := jobs.Rerun(t.Context(), pool, "payout", key, c); err != nil {
			t.Fatal(err)
		}
		until(t, pool, i+2, `select count(*) from pawl.periods where job = $1 and parent is null and state = 'complete'`, "payout")
		if n := len(r.keys()); n != 2+2*i {
			t.Errorf("%d calls after rerun %d, want %d", n, i+1, 2+2*i)
		}
	}
}

// What two shards of a period send are two things, and what one sends again is one, however often it is asked for.
func TestAShardSendsUnderAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	var mu sync.Mutex
	sent := map[string][]string{}
	job := once("notify", func(ctx context.Context, run *jobs.Run) error {
		key, err := run.EffectKey(ctx)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		sent[run.Shard.Key] = append(sent[run.Shard.Key], key)
		if run.Shard.Key == "north" && len(sent["north"]) == 1 { // and of the others nobody knows anything yet
			return errors.Join(run.SpendKey(ctx), jobs.ErrNoRetry)
		}
		return nil
	})
	job.ShardKeys = func(context.Context, *jobs.Run) ([]string, error) { return []string{"north", "south"}, nil }
	job.Sends = []string{"POST https://bank.example/"}
	start(t, jobs.Config{Pool: pool}, job)
	const whole = `select count(*) from pawl.periods where job = $1 and parent is null and state = '`
	until(t, pool, 1, whole+`dead'`, "notify")
	key := daysAgo(0).Format(time.DateOnly)
	if err := jobs.Retry(t.Context(), pool, "notify", key, "ann"); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 1, whole+`complete'`, "notify")
	for i, repeat := range []bool{false, true} {
		if sends, err := jobs.RerunEffects(t.Context(), pool, "notify", key); err != nil || len(sends) != 1 || sends[0].Key != fmt.Sprintf("notify:%s:rev-%d#*", key, 2+i) {
			t.Errorf("a rerun would send %+v, %v", sends, err)
		}
		if _, err := jobs.Rerun(t.Context(), pool, "notify", key, jobs.RerunConfig{Actor: "ann", Reason: "late", RepeatEffects: repeat}); err != nil {
			t.Fatal(err)
		}
		until(t, pool, 2+i, whole+`complete'`, "notify")
	}
	mu.Lock()
	defer mu.Unlock()
	k := "notify:" + key
	for shard, want := range map[string][]string{
		"north": {k + "#north", k + ":try-2#north", k + ":try-2#north", k + ":rev-3#north"},
		"south": {k + "#south", k + "#south", k + ":rev-3#south"},
	} {
		if got := sent[shard]; !slices.Equal(got, want) {
			t.Errorf("shard %s sent with %q, want %q", shard, got, want)
		}
	}
}

// The journal tells the shards' effects apart, and a rerun makes none of them again unless it is meant to.
func TestTheOnlyEffectOfAShardHasTheShardsKey(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	job := once("notify", func(ctx context.Context, run *jobs.Run) error {
		_, err := run.EffectOf(ctx, jobs.EffectConfig{Key: "request", Only: true, Request: run.Shard.Key, Send: func(ctx context.Context, key string) (any, error) {
			if own, err := run.EffectKey(ctx); err != nil || own != key {
				t.Errorf("sent under %q, and the run's key is %q, %v", key, own, err)
			}
			return r.pay(key, 100)
		}})
		return err
	})
	job.ShardKeys = func(context.Context, *jobs.Run) ([]string, error) { return []string{"north", "south"}, nil }
	start(t, jobs.Config{Pool: pool}, job)
	const whole = `select count(*) from pawl.periods where job = $1 and parent is null and state = 'complete'`
	until(t, pool, 1, whole, "notify")
	key := daysAgo(0).Format(time.DateOnly)
	rerun := func(repeat bool) {
		t.Helper()
		if _, err := jobs.Rerun(t.Context(), pool, "notify", key, jobs.RerunConfig{Actor: "ann", Reason: "late", RepeatEffects: repeat}); err != nil {
			t.Fatal(err)
		}
	}
	rerun(false)
	until(t, pool, 2, whole, "notify")
	sends, err := jobs.RerunEffects(t.Context(), pool, "notify", key)
	if err != nil || len(sends) != 2 {
		t.Fatalf("a rerun would send %+v, %v", sends, err)
	}
	rerun(true)
	until(t, pool, 3, whole, "notify")
	k := "notify:" + key
	got, want := r.keys(), []string{k + "#north", k + "#south", sends[0].Key, sends[1].Key}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || !slices.Contains(want, k+":rev-3#south") {
		t.Errorf("sent with %q, want %q", got, want)
	}
}
