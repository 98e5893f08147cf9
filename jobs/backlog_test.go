package jobs_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

// order records which periods were completed, in which order.
type order struct {
	mu   sync.Mutex
	keys []string
}

func (o *order) did(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keys = append(o.keys, key)
}

func (o *order) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.keys)
}

// TestABacklogOf700DaysRunsInOrder has two jobs, of which one needs the other, runs that fail, and both jobs paused for a
// while.
func TestABacklogOf700DaysRunsInOrder(t *testing.T) {
	t.Parallel()
	const days = 700
	pool := pgtest.New(t)
	var imported, settled order
	back := jobs.Job{Schedule: "@daily", Start: daysAgo(days), CatchUpWindow: 2 * days * 24 * time.Hour, CatchUpMax: days, RetryDelay: time.Millisecond}
	imports, settles := back, back
	imports.Name, imports.Func = "import", func(_ context.Context, run *jobs.Run) error {
		if n := len(imported.list()); n == 300 && run.Attempt == 1 {
			return errors.New("not yet")
		}
		imported.did(run.Period.Key)
		return nil
	}
	settles.Name, settles.Needs, settles.Func = "settle", []jobs.Need{{Job: "import"}}, func(_ context.Context, run *jobs.Run) error {
		if n := len(settled.list()); (n == 100 || n == 500) && run.Attempt == 1 {
			return errors.New("not yet")
		}
		settled.did(run.Period.Key)
		return nil
	}
	for range 2 { // replicas
		start(t, jobs.Config{Pool: pool}, imports, settles)
	}
	for i, job := range []string{"settle", "import"} {
		pgtest.Eventually(t, time.Minute, "some days are done", func() bool { return len(settled.list()) > 150+200*i })
		if err := jobs.Pause(t.Context(), pool, job, jobs.PauseConfig{Actor: "ann", Note: "month end"}); err != nil {
			t.Fatal(err)
		}
		until(t, pool, 0, `select count(*) from pawl.runs where job = $1 and ended_at is null`, job)
		before := count(t, pool, completeSQL, job)
		if before == days {
			t.Errorf("%s was done before the pause", job)
		}
		if _, err := jobs.Resume(t.Context(), pool, job, "ann", "none"); err != nil {
			t.Fatal(err)
		}
	}
	for _, job := range []string{"import", "settle"} {
		until(t, pool, days, completeSQL, job)
	}
	for name, o := range map[string]*order{"import": &imported, "settle": &settled} {
		if got := o.list(); len(got) != days || !slices.IsSorted(got) {
			t.Errorf("%s: %d days, in order: %v", name, len(got), slices.IsSorted(got))
		}
	}
	if n := count(t, pool, `select count(*) from pawl.periods where attempts = 2`); n != 3 {
		t.Errorf("%d periods needed a second run, want 3", n)
	}
	if n := count(t, pool, `select count(*) from pawl.periods s join pawl.periods i on i.key = s.key and i.job = 'import'
		where s.job = 'settle' and s.started_at < i.ended_at`); n != 0 {
		t.Errorf("%d periods began before what they need was complete", n)
	}
}
