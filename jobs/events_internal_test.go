package jobs

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
	"pawl/jobs/alert"
)

// events counts the events of a kind.
func events(t *testing.T, pool *pgxpool.Pool, kind string) int64 {
	t.Helper()
	return exec(t, pool, `select count(*) from pawl.events where kind = $1`, kind)
}

// look is a turn of a replica that is up for long, with all that it looks at.
func look(t *testing.T, rs ...*Runner) {
	t.Helper()
	var all sync.WaitGroup
	for _, r := range rs {
		all.Go(func() {
			if err := r.watch(context.Background(), &watcher{begun: time.Now().Add(-time.Hour)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

const ledgerSQL = `insert into pawl.schedules (job, app, definition, lock, watermark) values ($1, 'ledger', '{"owner":"payments"}', 'L', now()) returning 1`

func TestAPeriodThatDiesIsAnEventOfTheSameTransaction(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	exec(t, pool, ledgerSQL, "j")
	owes(t, pool, "1")
	exec(t, pool, `update pawl.periods set max_attempts = 1 returning 1`)
	run := r.mustStart(t, pool)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.SendBatch(t.Context(), endBatch([]endRequest{{run: run, outcome: stateFailed}}, true, time.Second, func(uuid.UUID, bool) {})).Close(); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, tx, `select count(*) from pawl.events where kind = 'dead'`); n != 1 {
		t.Errorf("%d events in the transaction of the end, want 1", n)
	}
	_ = tx.Rollback(t.Context())
	if n := events(t, pool, "dead"); n != 0 {
		t.Errorf("%d events of a transaction that was rolled back", n)
	}
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateFailed}}); err != nil || !ok[0] {
		t.Fatal(ok, err)
	}
	n := exec(t, pool, `select count(*) from pawl.events where kind = 'dead' and app = 'ledger' and job = 'j' and period = '1' and revision = 1
	  and run = $1::text::uuid and lock = 'L' and token = $2 and detail ->> 'reason' = 'failed' and detail ->> 'attempts' = '1'`, run.ID.String(), run.token.Seq)
	if n != 1 {
		t.Error("the event doesn't say what has died")
	}
	found, err := NewHistory(pool).Events(t.Context(), EventFilter{Job: "j", Period: "1", Kind: alert.Dead})
	if err != nil || len(found) != 1 || found[0].Owner != "payments" || found[0].Token != run.token.Seq || found[0].Detail["reason"] != stateFailed {
		t.Errorf("Events = %+v, %v", found, err)
	}
	if _, err := NewHistory(pool).Events(t.Context(), EventFilter{Kind: "death"}); !errors.Is(err, ErrState) {
		t.Errorf("Events of a kind that doesn't exist = %v", err)
	}
	exec(t, pool, `update pawl.periods set state = 'open', ended_at = null, max_attempts = 2 returning 1`)
	if ok, err := r.end(t.Context(), []endRequest{{run: r.mustStart(t, pool), outcome: stateTimedOut}}); err != nil || !ok[0] {
		t.Fatal(ok, err)
	}
	if n := events(t, pool, "dead"); n != 2 {
		t.Errorf("%d events of a period that has died twice", n)
	}
	if n := events(t, pool, "timeout"); n != 1 {
		t.Errorf("%d events of one timeout", n)
	}
}

func TestARunThatTheSweepFindsCanKillItsPeriodWithAnEvent(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	exec(t, pool, `update pawl.periods set max_attempts = 1 returning 1`)
	r.mustStart(t, pool)
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' returning 1`)
	if _, err := r.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	look(t, r)
	if dead, stale := events(t, pool, "dead"), events(t, pool, "stale_claim"); dead != 1 || stale != 1 {
		t.Errorf("%d dead and %d stale claims, want one each", dead, stale)
	}
}

func TestTicksThatAreMissedAreOneEvent(t *testing.T) {
	t.Parallel()
	_, pool := opened(t)
	exec(t, pool, `insert into pawl.periods (job, key, lock, state, reason, start_at, end_at, scheduled_at, last_at, ticks, ended_at)
	  values ('j', '1', 'L', 'missed', 'window', now(), now(), now() - interval '1 h', now(), 60, now()) returning 1`)
	exec(t, pool, `update pawl.periods set ticks = 61, last_at = now() returning 1`) // the stretch goes on
	if n := exec(t, pool, `select count(*) from pawl.events where kind = 'missed' and detail ->> 'ticks' = '60' and detail ->> 'reason' = 'window'`); n != 1 {
		t.Errorf("%d events", n)
	}
	exec(t, pool, `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at) values ('j', '2', 'L', now(), now(), now()) returning 1`)
	exec(t, pool, `update pawl.periods set state = 'missed', reason = 'too_late', ended_at = now() where key = '2' returning 1`)
	exec(t, pool, `update pawl.periods set state = 'dead', reason = 'uncertain' where key = '2' returning 1`)
	if missed, uncertain, dead := events(t, pool, "missed"), events(t, pool, "uncertain"), events(t, pool, "dead"); missed != 2 || uncertain != 1 || dead != 0 {
		t.Errorf("%d missed, %d uncertain, %d dead", missed, uncertain, dead)
	}
}

func TestTwoReplicasThatLookAtOnceMakeOneEvent(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	other := openedOn(t, pool)
	for _, key := range []string{"1", "2", "3"} {
		exec(t, pool, `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at, late_at, due_at)
		  values ('j', $1, 'L', now(), now(), now() - interval '2 h', now() - interval '1 h', now() - interval '1 min') returning 1`, key)
	}
	exec(t, pool, `insert into pawl.refusals (lock, token, current, holder, statement) values ('L', 7, 8, 'old', 'update') returning 1`)
	for range 20 {
		look(t, r, other)
	}
	for kind, want := range map[string]int64{"late": 1, "overdue": 3, "refusal": 1} {
		if n := events(t, pool, kind); n != want {
			t.Errorf("%d events %s, want %d", n, kind, want)
		}
	}
	if n := exec(t, pool, `select count(*) from pawl.events where kind = 'late' and period = '1' and detail ->> 'behind' = '2'`); n != 1 {
		t.Error("late isn't said of the first period, with how many are behind it")
	}
}

func TestOnlyWhatShouldHaveStartedIsLate(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	const sql = `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at, late_at, state, origin, waits, started_at, ended_at)
	  values ($1, '1', 'L', now(), now(), now() - interval '2 h', now() + $2 * interval '1 s', $3, $4, nullif($5, ''), case when $6 then now() end,
	    case when $3 = 'skipped' then now() end) returning 1`
	exec(t, pool, sql, "in-time", 60, "open", "schedule", "", false)
	exec(t, pool, sql, "late", -1, "open", "schedule", "", false)
	exec(t, pool, sql, "needs", -1, "open", "trigger", "needs", false)
	exec(t, pool, sql, "running", -1, "running", "schedule", "", true)
	exec(t, pool, sql, "retries", -1, "open", "schedule", "", true)
	exec(t, pool, sql, "skipped", -1, "skipped", "schedule", "", false)
	exec(t, pool, sql, "paused", -1, "open", "schedule", "paused", false)
	exec(t, pool, sql, "held", -1, "held", "schedule", "", false)
	exec(t, pool, sql, "backfill", -1, "open", "backfill", "", false)
	look(t, r)
	if n := exec(t, pool, `select count(*) from pawl.events where kind = 'late' and job in ('late', 'needs')`); n != 2 || events(t, pool, "late") != 2 {
		t.Errorf("%d of the two, %d in all", n, events(t, pool, "late"))
	}
}

func TestAPeriodIsAtRiskByTheMedianAndOverdueWhateverStopsIt(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	// 20 runs of an hour, one of them of a day, and older ones of no time.
	exec(t, pool, `with x as (insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, started_at, ended_at)
	  select j, 'd' || n, 'L', 'complete', now(), now(), now() - n * interval '1 day', now() - n * interval '1 day',
	         now() - n * interval '1 day' + case when n = 3 then interval '1 day' when n > 20 then interval '0' else interval '1 h' end
	    from generate_series(1, 60) n, unnest(array['slow', 'quick']) j returning 1) select count(*) from x`)
	const sql = `insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, started_at, due_at, ended_at, origin)
	  values ($1, $2, 'L', $3, now(), now(), now(), case when $3 in ('running', 'dead') then now() end, now() + $4 * interval '1 min',
	    case when $3 in ('dead', 'complete') then now() end, $5) returning 1`
	exec(t, pool, sql, "slow", "risk", "running", 59, "schedule")
	exec(t, pool, sql, "quick", "fine", "running", 61, "schedule")
	exec(t, pool, sql, "new", "unknown", "running", 1, "schedule")
	exec(t, pool, sql, "slow", "waits", "open", 59, "schedule")
	for _, state := range []string{"open", "running", "dead", "held", "complete"} {
		exec(t, pool, sql, "due", state, state, -1, "schedule")
	}
	exec(t, pool, sql, "due", "past", "open", -1, "backfill")
	look(t, r)
	n := exec(t, pool, `select count(*) from pawl.events where kind = 'at_risk' and job = 'slow' and period = 'risk' and detail ->> 'usual_seconds' = '3600'`)
	if n != 1 || events(t, pool, "at_risk") != 1 {
		t.Errorf("at risk: %d of the one, %d in all", n, events(t, pool, "at_risk"))
	}
	n = exec(t, pool, `select count(*) from pawl.events where kind = 'overdue' and period in ('open', 'running', 'dead', 'held')`)
	if n != 4 || events(t, pool, "overdue") != 4 {
		t.Errorf("overdue: %d of the four, %d in all", n, events(t, pool, "overdue"))
	}
}

func TestALeaseThatEndsWithoutAReleaseIsAStaleClaim(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	for _, name := range []string{"left", "taken", "released", "held"} {
		l, err := r.repo.Acquire(t.Context(), name, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "released":
			err = r.repo.Release(t.Context(), l)
		case "left", "taken":
			exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '2 s' where name = $1 returning 1`, name)
		}
		if name == "taken" {
			_, err = r.repo.Acquire(t.Context(), name, time.Minute)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	look(t, r)
	if n := exec(t, pool, `select count(*) from pawl.events where kind = 'stale_claim' and lock in ('left', 'taken')`); n != 2 || events(t, pool, "stale_claim") != 2 {
		t.Errorf("%d of the two, %d in all", n, events(t, pool, "stale_claim"))
	}
	if _, err := r.repo.Acquire(t.Context(), "left", time.Minute); err != nil { // the tenure that it has now is the same event
		t.Fatal(err)
	}
	look(t, r)
	if n := events(t, pool, "stale_claim"); n != 2 {
		t.Errorf("%d events after the successor came", n)
	}
}

func TestTheRefusalsOfOneTokenAreOneEventAndNameItsJob(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	exec(t, pool, ledgerSQL, "j")
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	for range 3 {
		run.refused(t.Context(), &fence.StaleError{Token: run.token, Code: fence.CodeNotHeld}, "transaction")
	}
	exec(t, pool, `insert into pawl.refusals (lock, token, passed, nth) values ('X', 1, true, null) returning 1`) // log mode
	look(t, r)
	n := exec(t, pool, `select count(*) from pawl.events where kind = 'refusal' and job = 'j' and app = 'ledger' and token = $1`, run.token.Seq)
	if n != 1 || events(t, pool, "refusal") != 1 {
		t.Errorf("%d of the one, %d in all", n, events(t, pool, "refusal"))
	}
}

func TestWorkIsUnclaimedWhenNoLiveReplicaHasItsFunction(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	exec(t, pool, `select pawl.lane('{M}')::int`)
	exec(t, pool, `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at) values ('gone', '1', 'M', now(), now(), now()) returning 1`)
	exec(t, pool, `select pawl.advance('{M}')`)
	look(t, r)
	if n := events(t, pool, "unclaimed"); n != 0 {
		t.Fatalf("%d events of work that is due just now", n)
	}
	exec(t, pool, `with x as (update pawl.river_job set scheduled_at = now() - interval '2 min' returning 1) select count(*) from x`)
	if err := r.watch(t.Context(), &watcher{begun: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if n := events(t, pool, "unclaimed"); n != 0 {
		t.Fatal("a replica that has just started hasn't seen the others yet")
	}
	look(t, r)
	if n := exec(t, pool, `select count(*) from pawl.events where kind = 'unclaimed' and job = 'gone' and period = '1' and lock = 'M'`); n != 1 || events(t, pool, "unclaimed") != 1 {
		t.Errorf("%d of the one, %d in all", n, events(t, pool, "unclaimed"))
	}
	exec(t, pool, `update pawl.replicas set seen_at = seen_at - interval '1 min' returning 1`)
	other := openedOn(t, pool)
	other.names = []string{"gone"}
	look(t, other)
	if n := exec(t, pool, `select count(*) from pawl.events where kind = 'unclaimed' and job = 'j'`); n != 1 {
		t.Error("a replica that has died still claims its jobs")
	}
}

// It takes four fifths of a second, then patience.
func TestATimeoutWarnsBeforeItStrikesAndAStuckFunctionIsAnEvent(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r, err := New(Config{Pool: pool, Grace: 50 * time.Millisecond, NoPrune: true})
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	j := Job{Name: "j", Schedule: "@manual", Timeout: time.Second, MaxRetries: NoRetries, Func: func(context.Context, *Run) error { <-release; return nil }}
	if err := r.Add(j); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	defer func() {
		close(release)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	pgtest.Eventually(t, 10*time.Second, "job is registered", func() bool { return exec(t, pool, `select count(*) from pawl.schedules`) == 1 })
	if _, err := Trigger(t.Context(), pool, "j", TriggerConfig{Actor: "test"}); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, 10*time.Second, "two timeout events, stuck and dead", func() bool {
		return events(t, pool, "timeout") == 2 && events(t, pool, "stuck") == 1 && events(t, pool, "dead") == 1
	})
	if n := exec(t, pool, `select count(*) from pawl.events n join pawl.events o on o.subject = n.run || '/over'
	  where n.subject = n.run || '/near' and n.at < o.at and n.detail ->> 'timeout' = '1s'`); n != 1 {
		t.Error("the warning doesn't come first")
	}
}
