package jobs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

// quickly is a job that is due every second and tells of its runs.
func quickly(name, schedule string, ran chan<- string) jobs.Job {
	return jobs.Job{Name: name, Schedule: schedule, Func: func(_ context.Context, run *jobs.Run) error {
		select {
		case ran <- run.Job + " " + schedule:
		default:
		}
		return nil
	}}
}

func waitFor(t *testing.T, ran <-chan string, want string) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case got := <-ran:
			if got == want {
				return
			}
		case <-late:
			t.Fatalf("%s doesn't run", want)
		}
	}
}

func TestJobsAreAddedChangedAndRetiredWhileARunnerRuns(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ran := make(chan string, 100)
	r, _, _ := start(t, jobs.Config{Pool: pool, WholeApp: true}, quickly("a", "@every 1s", ran), quickly("b", "@every 1s", ran))
	waitFor(t, ran, "a @every 1s")
	waitFor(t, ran, "b @every 1s")
	bad := quickly("b", "@every 0s", ran)
	err := r.Reload(t.Context(), jobs.Change{Set: []jobs.Job{quickly("c", "@every 1s", ran), bad}})
	var of *jobs.JobError
	if !errors.As(err, &of) || of.Job != "b" {
		t.Fatalf("a wrong schedule of b: %v", err)
	}
	waitFor(t, ran, "c @every 1s")
	waitFor(t, ran, "b @every 1s") // the old version
	if job := stored(t, pool, "a"); job.RetiredAt == nil {
		t.Error("a isn't in the file any more, and not retired")
	}
	if err := r.Reload(t.Context(), jobs.Change{Set: []jobs.Job{quickly("b", "@every 2s", ran)}, Keep: []string{"c"}}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, ran, "b @every 2s")
	waitFor(t, ran, "c @every 1s")
}

func TestAReloadDoesNotRetireTooMany(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ran := make(chan string, 100)
	r, _, _ := start(t, jobs.Config{Pool: pool, WholeApp: true},
		quickly("a", "@every 1s", ran), quickly("b", "@every 1s", ran), quickly("c", "@every 1s", ran), quickly("d", "@every 1s", ran))
	waitFor(t, ran, "d @every 1s")
	change := jobs.Change{Set: []jobs.Job{quickly("a", "@every 1s", ran)}}
	if err := r.Reload(t.Context(), change); !errors.Is(err, jobs.ErrRetire) {
		t.Fatalf("three of four are absent: %v", err)
	}
	drain(ran)
	waitFor(t, ran, "d @every 1s")
	change.AllowRetire = 3
	if err := r.Reload(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	if job := stored(t, pool, "d"); job.RetiredAt == nil {
		t.Error("d isn't retired")
	}
}

func drain(ran <-chan string) {
	for len(ran) > 0 {
		<-ran
	}
}

func TestARunnerIsIdleWhenNothingIsOwed(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	held := make(chan struct{})
	job := jobs.Job{Name: "j", Schedule: "@manual", Func: func(context.Context, *jobs.Run) error { <-held; return nil }}
	r, _, _ := start(t, jobs.Config{Pool: pool}, job)
	idle := func() bool {
		is, err := r.Idle(t.Context(), time.Now().Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	pgtest.Eventually(t, 10*time.Second, "it is idle from the beginning", idle)
	if _, err := jobs.Trigger(t.Context(), pool, "j", jobs.TriggerConfig{Actor: "test"}); err != nil {
		t.Fatal(err)
	}
	if idle() {
		t.Error("a period is owed, and it is idle")
	}
	close(held)
	pgtest.Eventually(t, 10*time.Second, "it is idle when the period is complete", idle)
}

func TestDefinitionsAreStoredWithoutRunningAnything(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ran := make(chan string, 1)
	r, err := jobs.New(jobs.Config{Pool: pool, WholeApp: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Add(quickly("a", "@every 1s", ran)); err != nil {
		t.Fatal(err)
	}
	if err := r.Store(t.Context()); err != nil {
		t.Fatal(err)
	}
	if job := stored(t, pool, "a"); job.Schedule != "@every 1s" || len(ran) > 0 {
		t.Errorf("%+v, ran %d", job, len(ran))
	}
}

// stored is a job as the database has it.
func stored(t *testing.T, pool *pgxpool.Pool, name string) jobs.JobRecord {
	t.Helper()
	all, err := jobs.NewHistory(pool).Jobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range all {
		if j.Job == name {
			return j
		}
	}
	t.Fatalf("no job %s is stored", name)
	return jobs.JobRecord{}
}
