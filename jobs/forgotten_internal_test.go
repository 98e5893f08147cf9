package jobs

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// forgetSQL is what a promoted standby knows that didn't have the run's start yet: the delivery is being worked, the
// period is open and nobody has the lock.
const forgetSQL = `
with r as (delete from pawl.runs where id = $1::text::uuid returning *),
     p as (update pawl.periods p set state = 'open', run = null, token = null, attempts = 0, started_at = null from r where p.run = r.id),
     j as (update pawl.river_job j set state = 'running', attempted_at = clock_timestamp() from r where j.id = r.delivery),
     n as (update pawl.lanes n set delivery = r.delivery from r where n.lock = r.lock),
     l as (update pawl.locks l set token = l.token - 1, grant_id = null, holder = null, expires_at = null from r where l.name = r.lock)
select count(*) from r`

func TestAPeriodWhoseStartWasLostInAFailoverIsStartedAgainAtOnce(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	runs := 0
	j := r.jobs["j"]
	j.Func = func(ctx context.Context, run *Run) error {
		if runs++; runs > 1 {
			return nil
		}
		if n := exec(t, pool, forgetSQL, run.ID.String()); n != 1 {
			t.Errorf("%d runs forgotten", n)
		}
		return run.Tx(ctx, func(pgx.Tx) error { return nil }) // refused
	}
	r.jobs["j"] = j
	r.lock(t.Context(), "L", exec(t, pool, `select max(id) from pawl.river_job`))
	if runs != 2 {
		t.Errorf("the function was called %d times, want once more", runs)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where state = 'complete' and attempts = 1`); n != 1 {
		t.Error("the period is not complete: it waits for the backstop")
	}
}

func TestTheEndOfARunThatTheDatabaseDoesNotKnowIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	exec(t, pool, forgetSQL, run.ID.String())
	if ok, err := r.sendAgain(t.Context(), endRequest{run: run, outcome: stateComplete}); ok || err != nil {
		t.Errorf("sendAgain = %t, %v, want false and an answer", ok, err)
	}
}

// fetchedSQL is a delivery that a client has fetched.
const fetchedSQL = `
update pawl.river_job set state = 'running', attempted_at = clock_timestamp() - interval '2 s', attempted_by = array[$1]
 where id = (select max(id) from pawl.river_job) returning id`

func TestADeliveryThatWasFetchedButNeverArrivedIsDeliveredAgainBeforeTheGraceIsOver(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	for _, c := range []struct {
		what, by string
		works    bool
		live     int64
	}{
		{"another process's", "another", false, 0},
		{"one that is being worked", r.cfg.Holder, true, 0},
		{"our own of which nothing was heard", r.cfg.Holder, false, 1},
	} {
		id := exec(t, pool, fetchedSQL, c.by)
		if c.works {
			r.arrived.Store(id, nil)
		}
		if err := r.backstop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := exec(t, pool, ruleSQL); n != c.live {
			t.Errorf("%s: %d new deliveries, want %d", c.what, n, c.live)
		}
		r.arrived.Delete(id)
	}
}
