package jobs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// has gives the runner these daily jobs, and no others.
func (r *Runner) has(names ...string) {
	r.jobs, r.names = map[string]Job{}, names
	for _, n := range names {
		r.jobs[n] = Job{Name: n, Schedule: "@daily", Lock: n, MaxRetries: 5}
	}
}

func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("j%02d", i))
	}
	return names
}

func TestJobsThatTheirAppHasNoMoreAreRetiredUnlessTheyAreTooMany(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		known, left, allow int
		refused            bool
	}{
		{20, 14, 0, false},   // 30 %
		{20, 13, 0, true},    // more
		{20, 13, 7, false},   // as intended
		{20, 13, 6, true},    // not so many
		{3, 1, 0, false},     // two are never too many
		{3, 0, 0, true},      // all of them are
		{3, 3, 0, false},     // nothing to do
		{100, 69, 30, true},  // 31
		{100, 69, 31, false}, // 31
	} {
		r, pool := opened(t)
		r.has(numbered(c.known)...)
		if err := r.register(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.has(numbered(c.left)...)
		r.cfg.WholeApp, r.cfg.AllowRetire = true, c.allow
		err := r.register(t.Context())
		var many *RetireError
		if errors.As(err, &many) != c.refused || !c.refused && err != nil {
			t.Errorf("%+v: register = %v", c, err)
		}
		if c.refused && (many.Known != c.known || len(many.Absent) != c.known-c.left ||
			!strings.Contains(err.Error(), fmt.Sprintf("%d of %d known jobs of app", c.known-c.left, c.known))) {
			t.Errorf("%+v: register = %v", c, err)
		}
		want := int64(c.left)
		if c.refused {
			want = int64(c.known)
		}
		if n := exec(t, pool, `select count(*) from pawl.schedules where retired_at is null`); n != want {
			t.Errorf("%+v: %d jobs are left, want %d", c, n, want)
		}
	}
}

// Replica A knows {x}, replica B {x, y}: neither retires the other's, and both jobs are planned, whoever plans.
func TestAnAppRetiresNothingOfAnother(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.has("a1", "a2", "a3", "a4")
	if err := r.register(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.has("b1")
	r.cfg.App, r.cfg.WholeApp = "ledger", true
	if err := r.register(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `update pawl.schedules set watermark = watermark - interval '1 d', next_at = now() returning 1`)
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where state = 'open'`); n != 5 {
		t.Errorf("%d jobs are planned, want all 5", n)
	}
}

// In a rolling deploy a replica with the old file may start after one with the new file. A job that only the new one has is
// retired by it and comes back, without a lost tick.
func TestAJobThatComesBackSoonHasLostNoTick(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.cfg.WholeApp = true
	start := func(names ...string) {
		t.Helper()
		r.has(names...)
		if err := r.register(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	start("x", "y")
	exec(t, pool, `update pawl.schedules set watermark = watermark - interval '3 d', next_at = now() where job = 'y' returning 1`)
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	start("x")
	if n := exec(t, pool, `select count(*) from pawl.periods where job = 'y' and state = 'cancelled' and reason = 'retired'`); n != 3 {
		t.Fatalf("%d periods are cancelled, want 3", n)
	}
	exec(t, pool, `update pawl.schedules set watermark = watermark - interval '1 d' where job = 'y' returning 1`) // a day passes, as it were
	exec(t, pool, `delete from pawl.periods where key = (select max(key) from pawl.periods) returning 1`)
	start("x", "y")
	if n := exec(t, pool, `select count(*) from pawl.periods where job = 'y' and state = 'open'`); n != 3 {
		t.Errorf("%d periods are owed again, want 3: %q", n, texts(t, pool, rowsSQL, "y"))
	}
	if n := exec(t, pool, `select count(*) from pawl.lanes n join pawl.river_job j on j.id = n.delivery where n.lock = 'y'`); n != 1 {
		t.Error("nothing delivers them")
	}
	// After a long time it begins anew.
	start("x")
	exec(t, pool, `update pawl.schedules set retired_at = retired_at - interval '2 h', watermark = watermark - interval '5 d' where job = 'y' returning 1`)
	start("x", "y")
	if n := exec(t, pool, `select count(*) from pawl.periods where job = 'y' and state = 'open'`); n != 0 {
		t.Errorf("%d periods of long ago are owed", n)
	}
}

func TestADefinitionOfALowerGenerationDoesNotReplaceAHigherOne(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	says := &said{}
	r.log = says.logger()
	start := func(generation int64, schedule string, names ...string) {
		t.Helper()
		r.has(names...)
		for name, j := range r.jobs {
			j.Schedule = schedule
			r.jobs[name] = j
		}
		r.cfg.Generation, r.cfg.WholeApp = generation, true
		if err := r.register(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stored := func() string {
		return strings.Join(texts(t, pool, `select definition ->> 'schedule' from pawl.schedules where retired_at is null order by job`), " ")
	}
	start(7, "@daily", "x", "y")
	start(6, "@hourly", "x") // an old replica starts again
	if got := stored(); got != "@daily @daily" {
		t.Errorf("stored are %s: the old replica has changed or retired a job", got)
	}
	for range 3 {
		exec(t, pool, `update pawl.schedules set next_at = now() returning 1`)
		if err := r.plan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := says.count("a later definition of the job is stored"); n != 1 {
		t.Errorf("the old replica says so %d times, want once", n)
	}
	start(8, "@hourly", "x", "y")
	if got := stored(); got != "@hourly @hourly" {
		t.Errorf("stored are %s", got)
	}
	if n := exec(t, pool, `select count(*) from pawl.schedules where generation = 8`); n != 2 {
		t.Error("the generation isn't stored")
	}
}

// Two replicas with different definitions of a job run side by side: the one that has started last counts, and the other
// plans by it too.
func TestAllReplicasPlanByTheDefinitionThatIsStored(t *testing.T) {
	t.Parallel()
	old, pool := opened(t)
	old.has("x")
	if err := old.register(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh := openedOn(t, pool)
	fresh.has("x")
	fresh.jobs["x"] = Job{Name: "x", Schedule: "@every 10m", Lock: "x", MaxRetries: 5}
	if err := fresh.register(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `update pawl.schedules set watermark = now() - interval '25 min', next_at = now() - interval '25 min' returning 1`)
	if err := old.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select sum(ticks) from pawl.periods`); n != 2 && n != 3 {
		t.Errorf("%d ticks in 25 minutes, want those of every 10 minutes", n)
	}
	if got := texts(t, pool, `select definition ->> 'schedule' from pawl.schedules`); !slices.Equal(got, []string{"@every 10m"}) {
		t.Errorf("stored is %s", got)
	}
}

func TestARetirementRecordsTheLastTicks(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.stored(t, Job{Name: "x", Schedule: "@daily"}, time.Now().UTC().AddDate(0, 0, -3))
	n, err := Retire(t.Context(), pool, "x", "ann", "replaced")
	if err != nil || n != 3 {
		t.Errorf("Retire = %d, %v, want the 3 days that nobody had planned yet", n, err)
	}
}
