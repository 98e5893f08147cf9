package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Who enters a lane writes its row, so that a snapshot from before can't decide by what it sees.
func TestAStaleSnapshotCannotEnterALane(t *testing.T) {
	t.Parallel()
	_, pool := opened(t)
	owes(t, pool, "1")
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	exec(t, tx, `select count(*) from pawl.lanes`) // the snapshot
	owes(t, pool, "2")
	_, err = tx.Exec(t.Context(), enterSQL)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "40001" {
		t.Errorf("enter = %v, want 40001: it would not see period 2", err)
	}
}

func TestAHandOverSeesWhatThePlannerItWaitedForHasPlanned(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	planner, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer planner.Rollback(context.Background())
	planOne(t, planner, "2")
	got := make(chan []*Run, 1)
	go func() {
		next, err := r.handover(context.Background(), []*Run{run})
		if err != nil {
			t.Error(err)
		}
		got <- next
	}()
	waitsForLock(t, pool)
	exec(t, planner, leaveTestSQL)
	if err := planner.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next := <-got; len(next) != 1 || next[0] == nil || next[0].Period.Key != "2" {
		t.Errorf("handed over to %v, want period 2", next)
	}
}

// owesEach plans one period for each of some locks.
func owesEach(t *testing.T, pool *pgxpool.Pool, locks ...string) {
	t.Helper()
	for _, lock := range locks {
		exec(t, pool, `select 1 from pawl.lane(array[$1])`, lock)
		exec(t, pool, `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at) values ('j', $1, $1, now(), now(), clock_timestamp()) returning 1`, lock)
	}
}

// The lanes of refused requests are entered too, and all at once: a planner in the middle of them must not meet the batch
// in both directions.
func TestABatchOfEndsEntersAllItsLanesAtOnce(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owesEach(t, pool, "A", "B", "C")
	s, err := r.start(t.Context(), []startRequest{{"A", uuid.New(), 0}, {"B", uuid.New(), 0}, {"C", uuid.New(), 0}})
	if err != nil {
		t.Fatal(err)
	}
	var ends []endRequest
	for _, one := range s {
		ends = append(ends, endRequest{run: one.run, outcome: stateComplete})
	}
	exec(t, pool, `update pawl.locks set grant_id = null, holder = null, expires_at = null where name = 'A' returning 1`) // its end will be refused
	planner, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer planner.Rollback(context.Background())
	exec(t, planner, `select 1 from pawl.lane(array['A'])`)
	type answer struct {
		ok  []bool
		err error
	}
	ended := make(chan answer, 1)
	go func() { ok, err := r.end(context.Background(), ends); ended <- answer{ok, err} }()
	waitsForLock(t, pool)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := planner.Exec(ctx, `select pawl.lane(array['C'])`); err != nil {
		t.Errorf("the planner's next lane = %v: the batch has it already, and waits for the first", err)
	}
	if err := planner.Commit(ctx); err != nil {
		t.Error(err)
	}
	if a := <-ended; a.err != nil || a.ok[0] || !a.ok[1] || !a.ok[2] {
		t.Errorf("end = %v, %v, want the forced one refused and the others ended", a.ok, a.err)
	}
}

// A process dies between the commit of its period and the end of its run, or a person has cancelled the period.
func TestTheSweepEndsARunAsItsPeriodSays(t *testing.T) {
	t.Parallel()
	for _, state := range []string{stateComplete, stateCancelled} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			r, pool := opened(t)
			owes(t, pool, "1", "2")
			run := r.mustStart(t, pool)
			exec(t, pool, `update pawl.periods set state = $1, ended_at = clock_timestamp() where key = '1' returning 1`, state)
			exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = 'L' returning 1`)
			if _, err := r.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := exec(t, pool, `select count(*) from pawl.runs r join pawl.periods p on p.run = r.id
			  where r.id = $1 and r.state = $2 and p.state = $2 and r.ended_at is not null`, run.ID, state); n != 1 {
				t.Errorf("run and period are not both %s", state)
			}
			if next := r.mustStart(t, pool); next.Period.Key != "2" {
				t.Errorf("period %s runs next", next.Period.Key)
			}
		})
	}
}
