package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/lockrepo"
)

// opened is a runner with its database calls, but without River and loops: the test decides what happens when.
func opened(t *testing.T) (*Runner, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.New(t)
	return openedOn(t, pool), pool
}

func openedOn(t *testing.T, pool *pgxpool.Pool) *Runner {
	t.Helper()
	r, err := New(Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Add(Job{Name: "j", Schedule: "@manual", TTL: time.Second, Func: func(context.Context, *Run) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	r.names, r.ttls = []string{"j"}, []int64{time.Minute.Milliseconds()}
	if _, err := r.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.shut)
	r.mostWait = 10 * time.Second // the tests take their time in the middle of a transaction
	return r
}

func exec(t *testing.T, db interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}, sql string, args ...any,
) (n int64) {
	t.Helper()
	if err := db.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

const (
	enterSQL     = `select 1 from pawl.lane(array['L'])`
	insertSQL    = `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at) values ('j', $1, 'L', now(), now(), clock_timestamp()) returning 1`
	leaveTestSQL = `select pawl.advance(array['L'])`
	ruleSQL      = `select count(*) from pawl.lanes n join pawl.river_job j on j.id = n.delivery where n.lock = 'L' and j.state = 'available'`
)

// planOne is a planner, step by step.
func planOne(t *testing.T, tx pgx.Tx, key string) {
	t.Helper()
	exec(t, tx, enterSQL)
	exec(t, tx, insertSQL, key)
}

// owes plans a period in a transaction of its own.
func owes(t *testing.T, pool *pgxpool.Pool, keys ...string) {
	t.Helper()
	for _, key := range keys {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		planOne(t, tx, key)
		exec(t, tx, leaveTestSQL)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *Runner) mustStart(t *testing.T, pool *pgxpool.Pool) *Run {
	t.Helper()
	s, err := r.start(t.Context(), []startRequest{{"L", uuid.New(), exec(t, pool, `select coalesce(max(id), 0) from pawl.river_job`)}})
	if err != nil || s[0].run == nil {
		t.Fatalf("start = %+v, %v", s, err)
	}
	return s[0].run
}

func TestAPlannerAndAnEndThatMeetLeaveADelivery(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	planner, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	planOne(t, planner, "2") // holds the lane, not committed
	ended := make(chan error, 1)
	go func() {
		_, err := r.end(context.Background(), []endRequest{{run: run, outcome: stateComplete}})
		ended <- err
	}()
	waitsForLock(t, pool)
	exec(t, planner, leaveTestSQL)
	if err := planner.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, ruleSQL); n != 1 {
		t.Errorf("%d live deliveries for the second period, want 1: the backlog is stranded", n)
	}
}

func TestAnEndAndAPlannerThatMeetLeaveADelivery(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	end, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = end.SendBatch(t.Context(), endBatch([]endRequest{{run: run, outcome: stateComplete}}, true, callTimeout, func(uuid.UUID, bool) {})).Close()
	if err != nil {
		t.Fatal(err)
	}
	planned := make(chan struct{})
	go func() { defer close(planned); owes(t, pool, "2") }()
	waitsForLock(t, pool)
	if err := end.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-planned
	if n := exec(t, pool, ruleSQL); n != 1 {
		t.Errorf("%d live deliveries for the second period, want 1", n)
	}
}

func TestAHandOverStartsTheNextPeriodUnderALargerToken(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1", "2")
	run := r.mustStart(t, pool)
	next, err := r.handover(t.Context(), []*Run{run})
	if err != nil || next[0] == nil {
		t.Fatalf("handover = %v, %v", next, err)
	}
	if next[0].token.Seq <= run.token.Seq || next[0].Period.Key != "2" {
		t.Errorf("handed over to %s under %s, after %s", next[0].Period.Key, next[0].token, run.token)
	}
	if n := exec(t, pool, `select count(*) from pawl.tenures t where t.token = $1 and t.how = 'released' and t.successor = $2`,
		run.token.Seq, next[0].token.Seq); n != 1 {
		t.Error("the finished run's tenure doesn't name its successor")
	}
}

// A guarded transaction of the finished run that somebody forgot must not commit under the next token.
func TestAHandOverDoesNotPassALeakedGuard(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1", "2")
	run := r.mustStart(t, pool)
	leak, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Rollback(context.Background())
	exec(t, leak, `select 1 from pawl.guard($1, $2)`, "L", run.token.Seq)
	next, err := r.handover(t.Context(), []*Run{run})
	if err != nil || next[0] != nil {
		t.Fatalf("handover = %v, %v: it passed a guard that is still open", next, err)
	}
	ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}})
	if err != nil || !ok[0] {
		t.Errorf("end = %v, %v: the plain end must pass", ok, err)
	}
}

func TestAStartWhoseAnswerWasLostIsFoundAgain(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	again, err := r.findRun(t.Context(), run.ID, "L", lockrepo.Now())
	if err != nil || again == nil || again.token != run.token || again.Attempt != 1 {
		t.Errorf("findRun = %+v, %v, want the run of the lost answer", again, err)
	}
	none, err := r.findRun(t.Context(), uuid.New(), "L", lockrepo.Now())
	if err != nil || none != nil {
		t.Errorf("findRun of a start that didn't commit = %+v, %v", none, err)
	}
}

func TestOfTwoDeliveriesOfALockTheSecondFindsNothing(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	s, err := r.start(t.Context(), []startRequest{{"L", uuid.New(), 1}, {"L", uuid.New(), 2}})
	if err != nil || s[0].outcome != outcomeStarted || s[1].outcome != outcomeNothing {
		t.Errorf("start = %+v, %v", s, err)
	}
}

func TestTheSweepFindsRunsOfForcedTakenDeletedAndExpiredLocks(t *testing.T) {
	t.Parallel()
	expire := `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = 'L' returning 1`
	for name, acts := range map[string][]string{
		"expired": {expire},
		"forced":  {`update pawl.locks set grant_id = null, holder = null, expires_at = null where name = 'L' returning 1`},
		"taken":   {`update pawl.locks set grant_id = gen_random_uuid(), token = token + 1 where name = 'L' returning 1`},
		"deleted": {`delete from pawl.locks where name = 'L' returning 1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, pool := opened(t)
			owes(t, pool, "1")
			r.mustStart(t, pool)
			if _, err := r.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := exec(t, pool, `select count(*) from pawl.runs where state = 'running'`); n != 1 {
				t.Fatal("a live run was swept")
			}
			for _, sql := range acts {
				exec(t, pool, sql)
			}
			if _, err := r.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := exec(t, pool, `select count(*) from pawl.runs where state = 'lost'`); n != 1 {
				t.Error("the run is not lost")
			}
			if n := exec(t, pool, `select count(*) from pawl.periods where state = 'open' and reason = 'lost'`); n != 1 {
				t.Error("the period is not owed again")
			}
			if n := exec(t, pool, ruleSQL); n != 1 {
				t.Error("nothing is delivered")
			}
			if name == "expired" {
				if n := exec(t, pool, `select count(*) from pawl.tenures where how = 'expired'`); n != 1 {
					t.Error("the stale claim is not in the history")
				}
				next := r.mustStart(t, pool)
				if n := exec(t, pool, `select count(*) from pawl.tenures where how = 'taken_over' and successor = $1`, next.token.Seq); n != 1 {
					t.Error("the next grant doesn't turn the stale claim into a takeover")
				}
			}
		})
	}
}

func TestTheSweepLeavesAnOpenGuardedTransactionAndItsRunAlone(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	open, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, open, `select 1 from pawl.guard($1, $2)`, "L", run.token.Seq)
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '0.1 s' where name = 'L' returning 1`)
	if _, err := r.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.runs where state = 'running'`); n != 1 {
		t.Error("the run was swept while its guarded transaction could still commit")
	}
	if err := open.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.runs where state = 'lost'`); n != 1 {
		t.Error("the run is not swept after the transaction has ended")
	}
}

func TestAnEndWithoutALiveLeaseIsRefused(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = 'L' returning 1`)
	ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}})
	if err != nil || ok[0] {
		t.Errorf("end = %v, %v, want a refusal", ok, err)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where state = 'running'`); n != 1 {
		t.Error("the refused end has changed the period")
	}
}

func TestTheBackstopDeliversWhatHasNoDelivery(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	exec(t, pool, `with d as (delete from pawl.river_job returning 1) select count(*) from d`)
	if err := r.backstop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, ruleSQL); n != 1 {
		t.Errorf("%d live deliveries, want 1", n)
	}
}

func TestTheBackstopEndsRiverRowsWithNobodyBehindThem(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	exec(t, pool, `update pawl.river_job set state = 'running', attempted_at = clock_timestamp() - interval '1 min' returning 1`)
	for range 2 {
		if err := r.backstop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := exec(t, pool, `select count(*) from pawl.river_job where state = 'discarded'`); n != 1 {
		t.Error("the abandoned row still runs")
	}
	if n := exec(t, pool, ruleSQL); n != 1 {
		t.Errorf("%d live deliveries, want 1", n)
	}
}

// waitsForLock returns when some other backend of this database waits for a lock.
func waitsForLock(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	pgtest.Eventually(t, 10*time.Second, "a backend waits for the lane", func() bool {
		return exec(t, pool, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) > 0
	})
}

// The old run has lost its lock, the new one of the same process holds it, and both end at once.
func TestAHandOverGoesToTheRunThatHoldsTheLock(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1", "2")
	old := r.mustStart(t, pool)
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = 'L' returning 1`)
	if _, err := r.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := r.mustStart(t, pool)
	next, err := r.handover(t.Context(), []*Run{now, old})
	if err != nil || next[0] == nil || next[1] != nil {
		t.Errorf("handover = %v, %v, want the heir behind the run that holds the lock", next, err)
	}
}

func TestARunWhoseLeaseWasForcedSaysSo(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	pgtest.Force(t, pool, "L", run.token.Seq, "stuck in a loop")
	if _, err := r.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.runs where state = 'lost' and error = 'released by force: stuck in a loop'`); n != 1 {
		t.Error("the run doesn't say that it was forced, and why")
	}
}
