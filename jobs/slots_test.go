package jobs_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/lockrepo"
)

func TestWhySaysForWhichSlotsAPeriodWaitsAndWhoHoldsThem(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool, Holder: "another/1"})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	permit, err := locks.AcquireSlot(t.Context(), `report:"acme"`, 1, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	start(t, jobs.Config{Pool: pool}, jobs.Job{
		Name: "report", Schedule: "@daily", Start: daysAgo(1), Concurrency: jobs.Concurrency{Key: `report:"acme"`, Limit: 1},
		Func: func(context.Context, *jobs.Run) error { return nil },
	})
	until(t, pool, 1, `select least(count(*), 1) from (select from pawl.runs where state = 'drained' offset 1) r`) // it was turned away twice
	var key string
	if err := pool.QueryRow(t.Context(), `select key from pawl.periods`).Scan(&key); err != nil {
		t.Fatal(err)
	}
	h := jobs.NewHistory(pool)
	why := func() string {
		w, err := h.Why(t.Context(), "report", key)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(w.Public(), "\n")
	}
	var told string
	pgtest.Eventually(t, 10*time.Second, "it says what it waits for", func() bool { // at some moments a run is under way
		told = why()
		return strings.Contains(told, "It waits for the only slot of")
	})
	for _, want := range []string{
		`It waits for the only slot of report:"acme". Held: report:"acme"#0 by another/1 until `, "which costs no attempt",
		`It found none of the slots of report:"acme" free `, " times from ",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("why lacks %q:\n%s", want, told)
		}
	}
	if strings.Contains(told, "shut down") || strings.Count(told, "\n") > 3 {
		t.Errorf("why tells each time that it was turned away:\n%s", told)
	}
	if err := locks.Release(t.Context(), permit); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 1, completeSQL, "report")
	if told = why(); strings.Contains(told, "It waits") {
		t.Errorf("complete, and why says:\n%s", told)
	}
}

func TestSlotsAreReadFromTheErrorOfARun(t *testing.T) {
	t.Parallel()
	full := "jobs: waits for a slot: " + (&lockrepo.SlotsError{Name: `a "b" all 3 slots of "c" are held`, Limit: 12}).Error()
	if s, ok := jobs.SlotsOf(full); !ok || s.Limit != 12 || s.Name != `a "b" all 3 slots of "c" are held` || len(s.Locks(99)) != 12 || !strings.HasSuffix(s.Locks(99)[11], "#11") {
		t.Errorf("%q is %+v, %v", full, s, ok)
	}
	for _, other := range []string{"", "lease expired", `lockrepo: all 2 slots of "x" are held`, "jobs: waits for a slot: no route to host"} {
		if s, ok := jobs.SlotsOf(other); ok {
			t.Errorf("%q is %+v", other, s)
		}
	}
}
