package jobs

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// owesUnder plans periods of any lock.
func owesUnder(t *testing.T, pool *pgxpool.Pool, lock string, keys ...string) {
	t.Helper()
	for _, key := range keys {
		exec(t, pool, `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at) values ('j', $1, $2, now(), now(), clock_timestamp()) returning 1`, key, lock)
		exec(t, pool, `select pawl.advance(array[$1])`, lock)
	}
}

// mustBegin starts the lock's oldest period, which has to be key, under a token that is larger than last.
func (r *Runner) mustBegin(t *testing.T, lock, key string, last int64) *Run {
	t.Helper()
	run := r.begin(t.Context(), lock, 0)
	if run == nil {
		t.Fatalf("nothing was started under %s", lock)
	}
	larger(t, run, key, last)
	return run
}

func (r *Runner) mustHandOver(t *testing.T, run *Run, key string, last int64) *Run {
	t.Helper()
	next, err := r.handover(t.Context(), []*Run{run})
	if err != nil || next[0] == nil {
		t.Fatalf("handover = %v, %v", next, err)
	}
	larger(t, next[0], key, last)
	return next[0]
}

func larger(t *testing.T, run *Run, key string, last int64) {
	t.Helper()
	if run.Period.Key != key || run.token.Seq <= last {
		t.Errorf("period %q started under %s, want period %q and a token above %s", run.Period.Key, run.token, key, fence.FormatSeq(last))
	}
}

func (r *Runner) mustEnd(t *testing.T, run *Run) {
	t.Helper()
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}}); err != nil || !ok[0] {
		t.Fatalf("end of %s = %v, %v", run.token, ok, err)
	}
}

// The markers and the data of a lost second vanish together: what they said was done is done again, once, and never
// under a token that somebody has seen.
func TestAPeriodWhoseCompletionAFailoverLostIsOwedAgainUnderALargerToken(t *testing.T) {
	t.Parallel()
	pair := pgtest.NewPair(t)
	pool := pgtest.Open(t, pair.Primary.URL())
	r := openedOn(t, pool)
	owesUnder(t, pool, "L", "1", "2", "3", "4")
	owesUnder(t, pool, "new", "a")
	owesUnder(t, pool, "caught", "x")
	first := r.mustBegin(t, "L", "1", 0)
	r.mustEnd(t, first)
	caught := r.mustBegin(t, "caught", "x", 0)
	pair.CutOff(t)
	pgtest.ClockAhead(t, pool, 59*time.Second)
	second := r.mustBegin(t, "L", "2", first.token.Seq)
	third := r.mustHandOver(t, second, "3", second.token.Seq)
	r.mustEnd(t, third)
	born := r.mustBegin(t, "new", "a", 0)
	r.mustEnd(t, born)
	r.mustEnd(t, caught)
	pair.FailOver(t)

	pool = pgtest.Open(t, pair.Standby.URL())
	r = openedOn(t, pool)
	if s, err := r.start(t.Context(), []startRequest{{"L", uuid.New(), 0}}); err != nil || s[0].outcome != outcomeAdopt {
		t.Errorf("start = %+v, %v, want adopt", s, err)
	}
	again := r.mustBegin(t, "L", "2", third.token.Seq)
	r.mustEnd(t, r.mustBegin(t, "new", "a", born.token.Seq))
	next := r.mustHandOver(t, again, "3", again.token.Seq)
	r.mustEnd(t, r.mustHandOver(t, next, "4", next.token.Seq))
	// Of the run that had begun before, the standby knows no end: it is one whose holder has fallen silent.
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = 'caught' returning 1`)
	if _, err := r.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.mustEnd(t, r.mustBegin(t, "caught", "x", caught.token.Seq))

	if n := exec(t, pool, `select count(*) from pawl.periods where state <> 'complete'`); n != 0 {
		t.Errorf("%d periods are not complete", n)
	}
	if n := exec(t, pool, `select count(*) from pawl.runs where state = 'complete'`); n != 6 {
		t.Errorf("%d runs are complete, want one for each of the 6 periods", n)
	}
	for _, run := range []*Run{third, born, caught} {
		if err := fence.Do(t.Context(), pool, run.token, nil); !errors.Is(err, fence.ErrStale) {
			t.Errorf("a transaction under %s, which was lost, = %v, want ErrStale", run.token, err)
		}
	}
}
