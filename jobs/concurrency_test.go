package jobs_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

func TestAtMostSoManyRunsOfAKeyWorkAtOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	var now, most atomic.Int64
	four := make(chan struct{})
	job := jobs.Job{
		Name: "report", Schedule: "@daily", Start: daysAgo(4), Overlap: jobs.OverlapAllow, MaxRetries: jobs.NoRetries,
		Params:      map[string]jobs.Param{"tenant": {Type: jobs.ParamString, Default: "acme"}},
		Concurrency: jobs.Concurrency{Key: "report:{{params.tenant}}", Limit: 2},
		Func: func(ctx context.Context, _ *jobs.Run) error {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			select { // as long as the first turned away takes to be written down
			case <-four:
			case <-ctx.Done():
			}
			return nil
		},
	}
	start(t, jobs.Config{Pool: pool, Concurrency: 4}, job)
	until(t, pool, 2, `select count(*) from pawl.locks where name like 'report:acme#%' and grant_id is not null`)
	until(t, pool, 2, `select count(distinct key) from pawl.runs where state = 'drained' and error like '%all 2 slots of "report:acme" are held%'`)
	close(four)
	until(t, pool, 4, completeSQL, "report")
	if most.Load() != 2 {
		t.Errorf("%d have worked at once, want 2", most.Load())
	}
	if n := count(t, pool, `select count(*) from pawl.periods where attempts <> 1`); n != 0 {
		t.Errorf("%d periods have paid for waiting with an attempt", n)
	}
	until(t, pool, 0, `select count(*) from pawl.locks where grant_id is not null`)
}

func TestAConcurrencyKeyNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	for key, fine := range map[string]bool{
		"mail": true, "mail:{{job}}": true, "{{ period.key }}": true, "{{shard.key}}": false, "x:{{params.tenant}}": true, "x:{{params.other}}": false, "": false, "{{}}": false, "x:{{params.Tenant}}": false, "{{job }}": true, "{{ Job}}": false, "{{a-b}}": false,
	} {
		j := jobs.Job{
			Name: "j", Schedule: "@daily", Func: nothing, Concurrency: jobs.Concurrency{Key: key, Limit: 1},
			Params: map[string]jobs.Param{"tenant": {Type: jobs.ParamString, Default: "acme"}},
		}
		var bad *jobs.ConfigError
		if err := j.Check(); (err == nil) != fine || err != nil && !errors.As(err, &bad) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	j := jobs.Job{Name: "j", Schedule: "@daily", Func: nothing, Concurrency: jobs.Concurrency{Key: "x", Limit: 1001}}
	if err := j.Check(); err == nil {
		t.Error("a limit of 1001 is taken")
	}
}

// A permit that is a lock of the job's own is one that its holder waits for, for ever and at no cost.
func TestAPermitIsNoLockOfTheJobsOwnShards(t *testing.T) {
	t.Parallel()
	j := jobs.Job{Name: "settle", Schedule: "@daily", Func: nothing, Shards: 2, Lock: "ledger", Concurrency: jobs.Concurrency{Key: "ledger", Limit: 1}}
	var bad *jobs.ConfigError
	if err := j.Check(); !errors.As(err, &bad) || bad.Field != "Concurrency.Key" {
		t.Errorf("Check = %v", err)
	}
	pool := pgtest.New(t)
	j.Start, j.Params = daysAgo(1), map[string]jobs.Param{"on": {Type: jobs.ParamString, Default: "ledger"}}
	j.Concurrency.Key = "{{params.on}}"
	start(t, jobs.Config{Pool: pool}, j)
	until(t, pool, 1, `select count(*) from pawl.periods where job = $1 and parent is null and state = 'dead'`, "settle")
	if n := count(t, pool, `select count(*) from pawl.runs where state = 'failed' and error like '%Concurrency.Key "ledger"%use another name%'`); n != 2 {
		t.Errorf("%d runs say why, want 2", n)
	}
}
