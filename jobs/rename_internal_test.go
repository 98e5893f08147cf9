package jobs

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawl/jobs/schedule"
)

// registers makes these the jobs of the runner, and stores them as it does when it begins.
func (r *Runner) registers(t *testing.T, js ...Job) error {
	t.Helper()
	all, names := map[string]Job{}, []string{}
	for _, j := range js {
		j.Func = func(context.Context, *Run) error { return nil }
		j, err := j.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		all[j.Name], names = j, append(names, j.Name)
	}
	r.setJobs(all, names)
	return r.register(t.Context())
}

func (r *Runner) mustHave(t *testing.T, js ...Job) {
	t.Helper()
	if err := r.registers(t, js...); err != nil {
		t.Fatal(err)
	}
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// startsA starts the oldest period under the lock of job a.
func (r *Runner) startsA(t *testing.T) *Run {
	t.Helper()
	s, err := r.start(t.Context(), []startRequest{{"job:a", uuid.New(), 0}})
	if err != nil {
		t.Fatal(err)
	}
	return s[0].run
}

func (r *Runner) completes(t *testing.T, run *Run) {
	t.Helper()
	if run == nil {
		t.Fatal("nothing was started")
	}
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}}); err != nil || !ok[0] {
		t.Fatalf("end of %s %s = %v, %v", run.Job, run.Period.Key, ok, err)
	}
}

func daily(name, from string, days int) Job {
	return Job{Name: name, RenameFrom: from, Schedule: "@daily", Start: time.Now().AddDate(0, 0, -days)}
}

const statesSQL = `select job || ' ' || state || ' ' || lock from pawl.periods order by scheduled_at, revision`

func TestARenamedJobGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	next := openedOn(t, pool)
	r.mustHave(t, daily("a", "", 4))
	r.completes(t, r.startsA(t))
	failed := r.startsA(t)
	if ok, err := r.end(t.Context(), []endRequest{{run: failed, outcome: stateFinal, err: "x"}}); err != nil || !ok[0] {
		t.Fatal(err)
	}
	changed := daily("b", "a", 4)
	changed.Owner, changed.Func = "ops", r.jobs["a"].Func
	diffs, err := Diff(t.Context(), pool, "default", []Job{changed})
	if err != nil || len(diffs) != 1 || diffs[0].What != DiffRenamed || len(diffs[0].Fields) != 2 || diffs[0].Fields[0] != (FieldChange{"name", "a", "b"}) || diffs[0].Fields[1].Field != "owner" {
		t.Errorf("Diff = %+v, %v", diffs, err)
	}
	mark := exec(t, pool, `select extract(epoch from watermark)::bigint from pawl.schedules where job = 'a'`)
	for range 2 { // the second time nothing changes
		next.mustHave(t, daily("b", "a", 4))
	}
	if got := strings.Join(texts(t, pool, `select job || ' ' || lock from pawl.schedules`), ", "); got != "b job:a" {
		t.Errorf("schedules: %s", got)
	}
	if n := exec(t, pool, `select extract(epoch from watermark)::bigint from pawl.schedules where job = 'b'`); n < mark {
		t.Errorf("the watermark is at %d, before the former's %d", n, mark)
	}
	want := "b complete job:a, b dead job:a, b open job:a, b open job:a"
	if got := strings.Join(texts(t, pool, statesSQL), ", "); got != want {
		t.Errorf("periods: %s, want %s", got, want)
	}
	if got := strings.Join(texts(t, pool, `select job || ' ' || state from pawl.runs order by started_at`), ", "); got != "b complete, b failed" {
		t.Errorf("runs: %s", got)
	}
	if got := strings.Join(texts(t, pool, `select kind || ' ' || state from pawl.river_job where state <> 'cancelled'`), ", "); got != "pawl.b available" {
		t.Errorf("deliveries: %s", got)
	}
	next.completes(t, next.startsA(t))
	next.completes(t, next.startsA(t))
	if run := next.startsA(t); run != nil {
		t.Errorf("%s %s runs once more", run.Job, run.Period.Key)
	}
	list, err := BackfillList(t.Context(), pool, "b", time.Now().AddDate(0, 0, -3).UTC().Format(time.DateOnly), time.Now().UTC().Format(time.DateOnly), BackfillConfig{})
	if err != nil {
		t.Fatal(err)
	}
	owed := 0
	for _, p := range list {
		if p.State != stateComplete {
			owed++
		}
	}
	if owed != 1 {
		t.Errorf("a backfill would owe %d of %+v, want the dead one", owed, list)
	}
	if n := exec(t, pool, `select count(*) from pawl.audit where action = 'rename' and job = 'b'`); n != 1 {
		t.Errorf("%d renames in the audit", n)
	}
	exec(t, pool, `update pawl.schedules set watermark = watermark - interval '1 day', next_at = now() - interval '1 day' where job = 'b' returning 1`)
	next.mustHave(t, daily("b", "", 4)) // without rename_from, as later files are: its lock stays
	if got := strings.Join(texts(t, pool, `select distinct lock from pawl.periods`), ", "); got != "job:a" {
		t.Errorf("locks: %s", got)
	}
}

func TestAPauseAndWhatItHoldsAreRenamedToo(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.mustHave(t, daily("a", "", 3))
	if err := Pause(t.Context(), pool, "a", PauseConfig{Actor: "ann", Note: "audit"}); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `update pawl.schedules set paused_at = now() - interval '30 h', watermark = watermark - interval '1 day', next_at = now() - interval '1 day' where job = 'a' returning 1`)
	r.mustHave(t, daily("b", "a", 3))
	if n := exec(t, pool, `select count(*) from pawl.schedules where job = 'b' and pause_note = 'audit' and paused_by = 'ann' and paused_at is not null`); n != 1 {
		t.Error("the pause is gone")
	}
	if run := r.startsA(t); run != nil {
		t.Errorf("%s runs in the pause", run.Period.Key)
	}
	if _, err := Resume(t.Context(), pool, "b", "ann", schedule.CatchUpAll); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.completes(t, r.startsA(t))
	}
}

// The lock keeps its name, so whoever runs under it goes on, and nobody beside it.
func TestARunThatIsUnderWayOutlivesTheRenamingOfItsJob(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	next := openedOn(t, pool)
	r.mustHave(t, daily("a", "", 2))
	run := r.startsA(t)
	_, run.kept = r.repo.Keep(t.Context(), run.lease)
	t.Cleanup(run.kept.Stop)
	next.mustHave(t, daily("b", "a", 2))
	if other := next.startsA(t); other != nil {
		t.Fatalf("%s %s runs beside it", other.Job, other.Period.Key)
	}
	if err := run.Tx(t.Context(), func(tx pgx.Tx) error { return run.Checkpoint(t.Context(), tx, 7) }); err != nil {
		t.Fatal(err)
	}
	if _, err := next.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.checkpoints where job = 'b' and value = '7'`); n != 1 {
		t.Error("its checkpoint has another name than its period")
	}
	r.completes(t, run)
	if got := strings.Join(texts(t, pool, statesSQL), ", "); got != "b complete job:a, b open job:a" {
		t.Errorf("periods: %s", got)
	}
	if other := r.startsA(t); other != nil {
		t.Error("the older replica has started what it has no function for")
	}
	next.completes(t, next.startsA(t))
}

func TestAnOlderReplicaNeitherBringsAFormerNameBackNorRetiresTheNewOne(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	next := openedOn(t, pool)
	log := &said{}
	r.log, r.cfg.WholeApp, next.cfg.WholeApp = log.logger(), true, true
	r.mustHave(t, daily("a", "", 2))
	next.mustHave(t, daily("b", "a", 2))
	for range 2 {
		r.mustHave(t, daily("a", "", 2)) // it is started once more, with the old file
	}
	if got := strings.Join(texts(t, pool, `select job || ' ' || (retired_at is null) from pawl.schedules`), ", "); got != "b true" {
		t.Errorf("schedules: %s", got)
	}
	if n := log.count("job has another name by now"); n != 1 {
		t.Errorf("it was said %d times", n)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where job = 'a'`); n != 0 {
		t.Errorf("%d periods have the former name", n)
	}
	if err := next.bringAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	next.mustHave(t, daily("b", "", 2), daily("a", "", 1)) // a new job of that name
	if got := strings.Join(texts(t, pool, `select job || ' ' || lock from pawl.schedules order by 1`), ", "); got != "a job:a, b job:a" {
		t.Errorf("schedules: %s", got)
	}
}
