package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Twenty people do all there is to do to one period while it runs.
func TestWhatManyDoToOnePeriodHappensOnceAndIsAudited(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{MaxRetries: NoRetries})[0]
	ctx, delivery := t.Context(), exec(t, pool, `select coalesce(max(id), 0) from pawl.river_job`)
	var done [4]atomic.Int64
	var completed atomic.Int64
	work := func(n int) {
		s, err := r.start(ctx, []startRequest{{"L", uuid.New(), delivery}})
		if err != nil {
			t.Errorf("start: %v", err)
			return
		}
		if s[0].run == nil {
			if _, err := r.sweep(ctx); err != nil { // what lost its lease to a cancel
				t.Errorf("sweep: %v", err)
			}
			return
		}
		outcome := []string{stateComplete, stateFailed}[n%2]
		ok, err := r.end(ctx, []endRequest{{run: s[0].run, outcome: outcome}})
		if err != nil {
			t.Errorf("end: %v", err)
			return
		}
		if ok[0] && outcome == stateComplete {
			completed.Add(1)
		}
	}
	var people, workers sync.WaitGroup
	over := make(chan struct{})
	for w := range 2 {
		workers.Go(func() {
			for n := w; ; n++ {
				select {
				case <-over:
					return
				default:
					work(n)
				}
			}
		})
	}
	for i := range 20 {
		people.Go(func() {
			for n := range 12 {
				act := []int{0, 1, 3, 0, 1, 2}[(i+n)%6]
				err := actOn(ctx, pool, act, key, fmt.Sprint("person ", i))
				switch {
				case err == nil:
					done[act].Add(1)
				case !errors.Is(err, ErrPeriodState) && !errors.Is(err, ErrChanged):
					t.Errorf("act %d: %v", act, err)
				}
			}
		})
	}
	people.Wait()
	close(over)
	workers.Wait()
	for range 10 { // what is owed yet, completes
		work(0)
	}
	t.Logf("reruns %d, retries %d, cancels %d, backfills %d, completions %d", done[0].Load(), done[1].Load(), done[2].Load(), done[3].Load(), completed.Load())
	for act, name := range []string{"rerun", "retry", "cancel", "backfill"} {
		if got := exec(t, pool, `select count(*) from pawl.audit where action = $1`, name); got != done[act].Load() {
			t.Errorf("%d rows of the audit for %d that did a %s", got, done[act].Load(), name)
		}
	}
	for what, sql := range map[string]string{
		"revisions completed twice": `select count(*) from (select from pawl.runs where state = 'complete' group by job, key, revision having count(*) > 1) x`,
		"periods lost":              `select count(*) from pawl.periods where state in ('open', 'running')`,
		"complete without a run":    `select count(*) from pawl.periods p where state = 'complete' and not exists (select from pawl.runs u where (u.job, u.key, u.revision) = (p.job, p.key, p.revision) and u.state = 'complete')`,
		"revisions left out":        `select max(revision) - count(*) from pawl.periods where job = 'j'`,
		"runs that go on":           `select count(*) from pawl.runs where ended_at is null`,
	} {
		if n := exec(t, pool, sql); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	if got := exec(t, pool, `select count(*) from pawl.runs where state = 'complete'`); got != completed.Load() || got == 0 {
		t.Errorf("%d runs are complete, %d were told so", got, completed.Load())
	}
	if got := exec(t, pool, `select max(revision) - 1 from pawl.periods where job = 'j'`); got != done[0].Load() {
		t.Errorf("%d revisions were added by %d reruns", got, done[0].Load())
	}
}

func actOn(ctx context.Context, pool *pgxpool.Pool, act int, key, who string) (err error) {
	switch act {
	case 0:
		_, err = Rerun(ctx, pool, "j", key, RerunConfig{Actor: who, Reason: "why"})
	case 1:
		err = Retry(ctx, pool, "j", key, who)
	case 2:
		err = Cancel(ctx, pool, "j", key, who, "why")
	case 3:
		_, err = Backfill(ctx, pool, "j", key, key, BackfillConfig{Actor: who, Seen: Seen{Owed: 1}})
	}
	return err
}
