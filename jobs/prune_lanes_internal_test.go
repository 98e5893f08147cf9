package jobs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
)

func TestLanesGoWhenNothingIsOwedOrRunsUnderThem(t *testing.T) {
	t.Parallel()
	run, pool := pruning(t)
	exec(t, pool, `with l as (insert into pawl.lanes (lock) select unnest('{go-never,go-rested,go-done,stay-recent,stay-held,stay-open,stay-paused,stay-dead,stay-runs,stay-delivery}'::text[]) returning 1) select count(*) from l`)
	exec(t, pool, `with l as (insert into pawl.locks (name, token, incarnation, grant_id, renewed_at, expires_at) values
	  ('go-rested', 1, 1, null, now() - interval '25 h', null), ('stay-recent', 1, 1, null, now() - interval '23 h', null),
	  ('stay-held', 1, 1, gen_random_uuid(), now() - interval '2 days', now() - interval '1 day')) select 1`)
	exec(t, pool, `with p as (insert into pawl.periods (job, key, lock, state, waits, ended_at, start_at, end_at, scheduled_at)
	  select 'j', lock, lock, state, waits, case when ended then now() end, now(), now(), now() from (values ('go-done', 'complete', null, true), ('stay-open', 'open', null, false),
	    ('stay-paused', 'held', 'paused', false), ('stay-dead', 'open', 'dead', false)) v (lock, state, waits, ended)) select 1`)
	exec(t, pool, `with r as (insert into pawl.runs (id, job, key, revision, attempt, lock, token) values (gen_random_uuid(), 'j', 'x', 1, 1, 'stay-runs', 1)) select 1`)
	exec(t, pool, `with d as (insert into pawl.river_job (state, queue, kind, args, max_attempts) values ('available', 'pawl', 'pawl.j', '{}', 1) returning id)
	  update pawl.lanes set delivery = d.id from d where lock = 'stay-delivery' returning 1`)
	if err := prune(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	left := strings.Join(texts(t, pool, `select lock from pawl.lanes where lock <> 'L' order by 1`), " ")
	if want := "stay-dead stay-delivery stay-held stay-open stay-paused stay-recent stay-runs"; left != want {
		t.Errorf("lanes %s are left, want %s", left, want)
	}
}

// The two orders in which a planner and the pruning can meet in a lane: neither loses the other's work.
func TestAPlannerThatMeetsThePruningOfItsLaneLosesNothing(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	exec(t, pool, `insert into pawl.lanes (lock) values ('L') returning 1`)
	planner := begun(t, r)
	planOne(t, planner, "1")
	pruner := begun(t, r)
	if locks, n, err := dropLanes(t.Context(), pruner, "", 10); err != nil || len(locks) != 0 || n != 0 {
		t.Fatalf("a lane that the planner holds: looked at %v, dropped %d, %v", locks, n, err)
	}
	exec(t, planner, leaveTestSQL)
	commit(t, planner)
	commit(t, pruner)
	exec(t, pool, `with p as (delete from pawl.periods), d as (delete from pawl.river_job) update pawl.lanes set delivery = null returning 1`)

	pruner = begun(t, r)
	if _, n, err := dropLanes(t.Context(), pruner, "", 10); err != nil || n != 1 {
		t.Fatalf("an idle lane: dropped %d, %v", n, err)
	}
	planned := make(chan error, 1)
	go func() {
		rows := []periodRow{{Job: "j", Key: "2", Revision: 1, Lock: "L", State: stateOpen, Origin: originSchedule, Most: 1, Ticks: 1}}
		planned <- pgx.BeginFunc(context.Background(), r.pool, func(tx pgx.Tx) error {
			var got []owed
			return tx.SendBatch(context.Background(), laneBatch("L", func(b *batch) { queueOwe(b, rows, &got) })).Close()
		})
	}()
	pgtest.Eventually(t, 10*time.Second, "the planner waits for the lane", func() bool {
		return exec(t, pool, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) > 0
	})
	commit(t, pruner)
	if err := <-planned; err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, deliveredSQL); n != 1 {
		t.Errorf("%d lanes have a live delivery for what they owe, want 1", n)
	}
}

const deliveredSQL = `
select count(*) from pawl.periods p join pawl.lanes n on n.lock = p.lock join pawl.river_job j on j.id = n.delivery and j.state = 'available'
 where p.state = 'open' and p.ended_at is null`

// Many planners and prunings on few lanes: what is owed has its lane and its delivery in the end, without the backstop.
func TestAStormOfPlannersAndPruningsLosesNoDelivery(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	const locks, rounds = 4, 60
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			for n := range rounds {
				lock := fmt.Sprint("s", rand.N(locks))
				rows := []periodRow{{Job: "j", Key: fmt.Sprint(i, " ", n), Revision: 1, Lock: lock, State: stateOpen, Origin: originSchedule, Most: 1, Ticks: 1}}
				var got []owed
				if err := r.transact(t.Context(), laneBatch(lock, func(b *batch) { queueOwe(b, rows, &got) })); err != nil {
					t.Error(err)
				}
				other := fmt.Sprint("s", rand.N(locks)) // what is owed there is done, and its lane idle
				err := r.transact(t.Context(), laneBatch(other, func(b *batch) {
					b.Queue(`update pawl.periods set state = 'complete', ended_at = clock_timestamp() where lock = $1 and ended_at is null`, other)
					b.Queue(`update pawl.river_job set state = 'completed', finalized_at = now() where args ->> 'lock' = $1 and state = 'available'`, other)
				}))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	planned := make(chan struct{})
	go func() { all.Wait(); close(planned) }()
	var dropped int64
	for done := false; !done; {
		select {
		case <-planned:
			done = true
		default:
		}
		tx := begun(t, r)
		_, n, err := dropLanes(t.Context(), tx, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		commit(t, tx)
		dropped += n
	}
	lost := texts(t, pool, `select distinct p.lock from pawl.periods p left join pawl.lanes n on n.lock = p.lock left join pawl.river_job j on j.id = n.delivery and j.state = 'available'
	  where p.ended_at is null and j.id is null`)
	if len(lost) > 0 || dropped == 0 {
		t.Errorf("%v owe something that isn't delivered; %d lanes were dropped meanwhile", lost, dropped)
	}
}

func begun(t *testing.T, r *Runner) pgx.Tx {
	t.Helper()
	tx, err := r.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func commit(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}
