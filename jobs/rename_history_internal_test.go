package jobs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
)

func TestJobsAreRenamedBackAndOn(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.mustHave(t, daily("a", "", 3))
	r.completes(t, r.startsA(t))
	way := []string{"a", "b", "c", "b", "a", "d"}
	for i := range way[1:] {
		r.mustHave(t, daily(way[i+1], way[i], 3))
		for range 2 { // the second finds that it is done
			if err := r.bringAll(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := strings.Join(texts(t, pool, statesSQL), ", "); got != "d complete job:a, d open job:a, d open job:a" {
		t.Errorf("periods: %s", got)
	}
	if got := strings.Join(texts(t, pool, `select former || job || (done_at is not null) from pawl.renames order by 1`), ", "); got != "adtrue, bdtrue, cdtrue" {
		t.Errorf("renames: %s", got)
	}
}

func TestARenameThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.mustHave(t, daily("a", "", 2), daily("was", "", 2))
	other := openedOn(t, pool)
	other.cfg.App = "other"
	if err := other.registers(t, daily("b", "a", 2)); !errors.Is(err, errOtherApp) {
		t.Errorf("another app's job: %v", err)
	}
	if _, err := Retire(t.Context(), pool, "was", "ann", "x"); err != nil {
		t.Fatal(err)
	}
	if err := r.registers(t, daily("was", "a", 2)); !errors.Is(err, errNameUsed) {
		t.Errorf("a name with a history: %v", err)
	}
	older := openedOn(t, pool)
	r.cfg.Generation = 2
	r.mustHave(t, daily("a", "", 2))
	if older.mustHave(t, daily("b", "a", 2)); exec(t, pool, `select count(*) from pawl.schedules where job = 'b'`) != 0 {
		t.Error("an older file has renamed what a later one stored")
	}
	log := &said{}
	r.log = log.logger()
	r.mustHave(t, daily("b", "", 2))
	if r.mustHave(t, daily("b", "a", 2)); log.count("nothing is taken over") != 1 {
		t.Error("both are stored, and it wasn't said")
	}
	var bad *ConfigError
	if err := r.registers(t, daily("x", "a", 2), daily("y", "a", 2)); !errors.As(err, &bad) || bad.Job != "y" || bad.Field != "RenameFrom" {
		t.Errorf("two heirs: %v", err)
	}
	if err := r.registers(t, daily("x", "y", 2), daily("y", "z", 2)); !errors.As(err, &bad) || bad.Job != "x" {
		t.Errorf("a chain: %v", err)
	}
}

// pastSQL gives a job a long history of complete days, each with a run and its output.
const pastSQL = `
with p as (
  insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, ended_at)
  select $1::text, to_char(d, 'YYYY-MM-DD'), 'job:' || $1, 'complete', d, d, d, d from generate_series(now() - $2::int * interval '1 day', now() - interval '5 days', interval '1 day') d
  returning *
), r as (
  insert into pawl.runs (id, job, key, revision, attempt, lock, token, state, started_at, ended_at)
  select gen_random_uuid(), job, key, 1, 1, lock, 1, 'complete', ended_at, ended_at from p returning *
), o as (insert into pawl.outputs (run, job, head, tail, bytes) select id, job, '', '', 0 from r
), a as (
  insert into pawl.artifact_versions (name, version, lock, token, hash, size, file, holder, run, job, key, revision, operation, at)
  select key, 1, lock, 1, '', 0, key, '', id, job, key, 1, id, ended_at from r
   union all select 'of a period that is gone ' || key, 1, lock, 1, '', 0, key, '', id, job, 'gone', 1, id, ended_at from r)
select count(*) from p`

// A long history is renamed afterwards, in batches. What it knows counts meanwhile.
func TestALongHistoryIsRenamedAfterwardsAndCountsMeanwhile(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.mustHave(t, daily("a", "", 3))
	all := exec(t, pool, pastSQL, "a", 3500)
	r.mustHave(t, daily("b", "a", 3), Job{Name: "after", Schedule: "@daily", Needs: []Need{{"b"}}})
	if n := exec(t, pool, `select count(*) from pawl.periods where job = 'a'`); n < all-pruneBatch || n >= all {
		t.Fatalf("%d periods have the former name", n)
	}
	old := texts(t, pool, `select key from pawl.periods where job = 'a' order by scheduled_at`)
	if err := reruns(t, pool, "b", old[0]); err != nil {
		t.Errorf("a rerun of what has the former name: %v", err)
	}
	list, err := Backfill(t.Context(), pool, "b", old[1], old[4], BackfillConfig{Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if p.State != stateComplete {
			t.Errorf("a backfill owes %s, which is %q", p.Key, p.State)
		}
	}
	// A planner whose watermark was set back owes nothing that is complete.
	at, err := time.Parse(time.DateOnly, old[10])
	if err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `update pawl.schedules set watermark = $1, next_at = now(), definition = definition || '{"catch_up_window": 700000000000000000}' where job = 'b' returning 1`, at.Add(-time.Hour))
	r.planAt(t, "b", at.Add(5*24*time.Hour))
	if n := exec(t, pool, `select count(*) from (select key from pawl.periods where job in ('a', 'b') group by key, revision having count(*) > 1) twice`); n != 0 {
		t.Errorf("%d periods are there twice", n)
	}
	if n := exec(t, pool, `select (pawl.waits_for('after', $1, now(), 'backfill') is null)::int`, old[20]); n != 1 {
		t.Error("what needs a period doesn't see that it is complete under the former name")
	}
	exec(t, pool, `update pawl.schedules set definition = jsonb_set(definition, '{needs}', '["a"]') where job = 'after' returning 1`)
	if n := exec(t, pool, `select (pawl.waits_for('after', $1, now(), 'backfill') is null)::int`, texts(t, pool, `select max(key) from pawl.periods where job = 'b' and state = 'complete'`)[0]); n != 1 {
		t.Error("what needs a period by the former name doesn't see that it is complete")
	}
	for n := int64(1); n > 0; n = exec(t, pool, `select count(*) from pawl.renames where done_at is null`) {
		if err := r.bringAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"periods", "runs", "outputs", "checkpoints", "artifact_versions"} {
		if n := exec(t, pool, `select count(*) from pawl.`+table+` where job = 'a'`); n != 0 {
			t.Errorf("%s: %d rows have the former name", table, n)
		}
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where job = 'b' and revision = 1 and scheduled_at < now() - interval '4 days'`); n != all {
		t.Errorf("%d periods of %d", n, all)
	}
}

// reruns asks for one more revision of a period.
func reruns(t *testing.T, pool *pgxpool.Pool, job, key string) error {
	t.Helper()
	_, err := Rerun(t.Context(), pool, job, key, RerunConfig{Actor: "ann", Reason: "test"})
	return err
}

// Old and new replicas plan, start and end at once while the job is renamed.
func TestATickIsNeitherLostNorDoubledWhileItsJobIsRenamed(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	job := func(name, from string) Job {
		return Job{Name: name, RenameFrom: from, Schedule: "@every 1s", CatchUp: "all", Func: func(context.Context, *Run) error { return nil }}
	}
	run := func(j Job) func() {
		r, err := New(Config{Pool: pool, NoPrune: true, WholeApp: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Add(j); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		return func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	const done = `select count(*) from pawl.periods where job = $1 and state = 'complete'`
	old := []func(){run(job("a", "")), run(job("a", ""))}
	pgtest.Eventually(t, 30*time.Second, "the former job runs", func() bool { return exec(t, pool, done, "a") >= 3 })
	fresh := []func(){run(job("b", "a")), run(job("b", "a"))}
	pgtest.Eventually(t, 30*time.Second, "it is renamed", func() bool { return exec(t, pool, done, "b") >= 3 })
	old[0]()
	old[0] = run(job("a", "")) // an old replica is started again
	more := exec(t, pool, done, "b") + 3
	pgtest.Eventually(t, 30*time.Second, "the renamed job runs on", func() bool { return exec(t, pool, done, "b") >= more })
	for _, stop := range append(old, fresh...) {
		stop()
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where job = 'a'`) + exec(t, pool, `select count(*) from pawl.schedules where job = 'a'`); n != 0 {
		t.Errorf("the former name is back in %d rows", n)
	}
	// The ticks are a second apart: what is missing leaves a gap, what is there twice has one key.
	gaps := texts(t, pool, `select key from (select key, coalesce(last_at, scheduled_at) as ends, lead(scheduled_at) over (order by scheduled_at) as next from pawl.periods) p
	  where next - ends <> interval '1 second'`)
	if len(gaps) > 0 {
		t.Errorf("ticks are missing or double after %v", gaps)
	}
	if n := exec(t, pool, `select count(*) from (select key from pawl.runs where state = 'complete' group by key having count(*) > 1) twice`); n != 0 {
		t.Errorf("%d periods were completed twice", n)
	}
}
