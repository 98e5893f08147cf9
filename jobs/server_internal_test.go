package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// restart makes the clock row one of an earlier start of the server, as a restart would.
const restart = `update pawl.clock set incarnation = incarnation - 1, since = 'epoch' returning 1`

func TestStartAsksForAdoptionAfterARestartAndTokensGrowBeyondTheFloor(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	exec(t, pool, restart)
	s, err := r.start(t.Context(), []startRequest{{"L", uuid.New(), 0}})
	if err != nil || s[0].outcome != outcomeAdopt || s[0].run != nil {
		t.Fatalf("start = %+v, %v, want adopt and no run", s, err)
	}
	before := exec(t, pool, `select pawl.now_us()`)
	run := r.begin(t.Context(), "L", 0) // adopts by itself
	if run == nil {
		t.Fatal("nothing was started after the adoption")
	}
	if ahead := time.Duration(run.token.Seq-before) * time.Microsecond; ahead < time.Minute {
		t.Errorf("the first token after a restart is %s ahead of the clock, want a minute at least", ahead)
	}
	if run.token.Seq >= 1<<53 {
		t.Errorf("token %d doesn't fit into 53 bits", run.token.Seq)
	}
}

func TestAHandOverGrantsNothingBeforeTheAdoption(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1", "2")
	run := r.mustStart(t, pool)
	exec(t, pool, restart)
	next, err := r.handover(t.Context(), []*Run{run})
	if err != nil || next[0] != nil {
		t.Errorf("handover = %v, %v, want nothing", next, err)
	}
	ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}})
	if err != nil || !ok[0] {
		t.Errorf("end = %v, %v: a holder keeps its lease over a restart", ok, err)
	}
}

func TestADumpRestoredElsewhereStartsNothingByItself(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	exec(t, pool, `update pawl.clock set incarnation = incarnation - 1, system_identifier = system_identifier - 1 returning 1`)
	if run := r.begin(t.Context(), "L", 0); run != nil {
		t.Errorf("started %s on a restored copy", run.token)
	}
	err := r.repo.Adopt(t.Context(), false)
	if !errors.Is(err, fence.ErrOtherDatabase) {
		t.Errorf("Adopt = %v, want ErrOtherDatabase", err)
	}
	if err := r.repo.Adopt(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if run := r.begin(t.Context(), "L", 0); run == nil {
		t.Error("nothing starts after a person has adopted the copy")
	}
}

func TestTheLocksCannotBeTruncated(t *testing.T) {
	t.Parallel()
	_, err := pgtest.New(t).Exec(t.Context(), `truncate pawl.locks`)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != fence.CodeUnfenced {
		t.Errorf("truncate = %v, want a refusal", err)
	}
}

// A holder that died inside a long statement would block its successor for as long as that runs.
func TestTheSweepTerminatesWhatBlocksALeaseThatHasEnded(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	blocked := make(chan error, 1)
	go func() {
		blocked <- fence.Do(context.Background(), pool, run.token, func(tx pgx.Tx) error {
			_, err := tx.Exec(context.Background(), `select pg_sleep(60)`)
			return err
		})
	}()
	pgtest.Eventually(t, 10*time.Second, "the holder is inside its statement", func() bool {
		return exec(t, pool, `select count(*) from pg_stat_activity where datname = current_database() and query like '%pg_sleep(60)%' and state = 'active'`) > 1
	})
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '2 s' where name = 'L' returning 1`)
	pgtest.Eventually(t, 10*time.Second, "the successor has started", func() bool {
		if _, err := r.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := r.begin(t.Context(), "L", 0)
		return next != nil && next.token.Seq > run.token.Seq
	})
	if err := <-blocked; err == nil {
		t.Error("the old holder's transaction has committed")
	}
}

func TestAPeriodKeepsTheLockItWasPlannedWith(t *testing.T) {
	t.Parallel()
	r, _ := opened(t)
	j := Job{Name: "j", Schedule: "@daily", Start: time.Now().AddDate(0, 0, -1), Lock: "L", MaxRetries: 5}
	if err := r.registerJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.Lock = "M"
	if err := r.registerJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if run := r.begin(t.Context(), "M", 0); run != nil {
		t.Errorf("the period runs under the new lock, %s: a holder of the old one would pass its guard too", run.token)
	}
	if run := r.begin(t.Context(), "L", 0); run == nil {
		t.Error("the period doesn't run under the lock it was planned with")
	}
}

// An index on a column that a renewal changes would cost every beat, one that says who is held every acquire and release; a
// foreign key would block takeovers.
func TestTheLocksHaveNoIndexButTheirKeyAndNoForeignKey(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	if n := exec(t, pool, `select count(*) from pg_index where indrelid = 'pawl.locks'::regclass`); n != 1 {
		t.Errorf("%d indexes, want the primary key alone", n)
	}
	if n := exec(t, pool, `select count(*) from pg_constraint where confrelid = 'pawl.locks'::regclass`); n != 0 {
		t.Errorf("%d foreign keys reference locks", n)
	}
}
