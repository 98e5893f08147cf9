package jobs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
)

// chain registers a job of days, lock L, and owes the days that ended before today: "1" is the oldest. It returns the keys.
func (r *Runner) chain(t *testing.T, days int, j Job) (keys []string) {
	t.Helper()
	j.Name, j.Schedule, j.Lock, j.CatchUpWindow = "j", "@daily", "L", 24*time.Hour*400
	j.CatchUpMax = 1000
	j = r.stored(t, j, time.Now().UTC().AddDate(0, 0, -days))
	j.TTL = time.Minute
	r.jobs["j"] = j
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys = texts(t, r.cfg.Pool, `select key from pawl.periods where job = 'j' order by scheduled_at`)
	if len(keys) != days {
		t.Fatalf("%d days are owed, want %d", len(keys), days)
	}
	return keys
}

// goes starts the lock's next period and ends its run so. It returns the key, or "" if none may run.
func (r *Runner) goes(t *testing.T, outcome string) string {
	t.Helper()
	s, err := r.start(t.Context(), []startRequest{{"L", uuid.New(), exec(t, r.cfg.Pool, `select coalesce(max(id), 0) from pawl.river_job`)}})
	if err != nil {
		t.Fatal(err)
	}
	run := s[0].run
	if run == nil {
		return ""
	}
	ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: outcome}})
	if err != nil || !ok[0] {
		t.Fatalf("end = %v, %v", ok, err)
	}
	r.count(t.Context(), run, outcome, true)
	return run.Period.Key
}

func state(t *testing.T, pool *pgxpool.Pool, key string) string {
	t.Helper()
	return strings.Join(texts(t, pool, `select state || coalesce(':' || waits, '') from pawl.periods where key = $1 order by revision`, key), " ")
}

// A dead period never blocks the next one, unless the job asks for that.
func TestADeadPeriodDoesNotBlockTheNext(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 2, Job{MaxRetries: NoRetries})
	if got := r.goes(t, stateFailed); got != keys[0] || state(t, pool, got) != "dead" {
		t.Fatalf("%s is %s", got, state(t, pool, got))
	}
	if got := r.goes(t, stateComplete); got != keys[1] {
		t.Errorf("%q runs after it, want %q", got, keys[1])
	}
	if err := Retry(t.Context(), pool, "j", keys[0], "ann"); err != nil {
		t.Fatal(err)
	}
	if got := r.goes(t, stateComplete); got != keys[0] {
		t.Errorf("%q runs after the retry, want %q", got, keys[0])
	}
}

func TestAJobThatHoldsTheNextWaitsForItsDeadPeriod(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"retry", "cancel", "trigger"} {
		r, pool := opened(t)
		keys := r.chain(t, 3, Job{MaxRetries: NoRetries, OnDead: OnDeadHoldNext})
		r.goes(t, stateFailed)
		if got := state(t, pool, keys[0]) + " " + state(t, pool, keys[1]) + " " + state(t, pool, keys[2]); got != "dead:decision open:dead open:dead" {
			t.Fatalf("states %q", got)
		}
		if got := r.goes(t, stateComplete); got != "" {
			t.Fatalf("%s runs though the day before it is dead", got)
		}
		// The next day is created all the same, and waits too.
		exec(t, pool, `update pawl.schedules set watermark = watermark - interval '10 h' returning 1`)
		r.planAt(t, "j", time.Now().UTC().AddDate(0, 0, 1))
		if n := exec(t, pool, `select count(*) from pawl.periods where waits = 'dead'`); n < 3 {
			t.Errorf("%d periods wait behind the dead one, want 3", n)
		}
		first := keys[0]
		switch way {
		case "retry":
			if err := Retry(t.Context(), pool, "j", keys[0], "ann"); err != nil {
				t.Fatal(err)
			}
		case "cancel":
			if err := Cancel(t.Context(), pool, "j", keys[0], "ann", "settled by hand"); err != nil {
				t.Fatal(err)
			}
			first = keys[1]
		case "trigger":
			if _, err := Backfill(t.Context(), pool, "j", keys[0], keys[0], BackfillConfig{Actor: "ann"}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got := r.goes(t, stateComplete); got != first {
			t.Errorf("%s: %q runs first, want %q", way, got, first)
		}
		for range 2 {
			r.goes(t, stateComplete)
		}
		if n := exec(t, pool, `select count(*) from pawl.periods where waits is not null`); n != 0 {
			t.Errorf("%s: %d periods still wait", way, n)
		}
	}
}

func TestAJobThatPausesWhenAPeriodIsDeadStartsNothing(t *testing.T) {
	t.Parallel()
	for _, swept := range []bool{false, true} {
		r, pool := opened(t)
		keys := r.chain(t, 3, Job{MaxRetries: NoRetries, OnDead: OnDeadPause})
		if swept {
			r.mustStart(t, pool)
			exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' returning 1`)
			if _, err := r.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		} else {
			r.goes(t, stateFailed)
		}
		if n := exec(t, pool, `select count(*) from pawl.schedules where paused_at is not null and paused_by = $1 and pause_note like '%' || $2 || ' is dead'`,
			r.cfg.Holder, keys[0]); n != 1 {
			t.Error("the job is not paused")
		}
		if got := r.goes(t, stateComplete); got != "" {
			t.Fatalf("%s runs though the job is paused", got)
		}
		if _, err := Resume(t.Context(), pool, "j", "ann", ""); err != nil {
			t.Fatal(err)
		}
		if got := r.goes(t, stateComplete); got != keys[1] {
			t.Errorf("%q runs after the resume, want %q", got, keys[1])
		}
	}
}

// The process died between the commit in which a period dies and the pause: nothing behind starts, and any replica pauses.
func TestAPauseThatWasLeftToDoIsDoneByTheBackstop(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.chain(t, 3, Job{MaxRetries: NoRetries, OnDead: OnDeadPause})
	run := r.mustStart(t, pool)
	if _, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateFailed}}); err != nil { // and nobody counts it
		t.Fatal(err)
	}
	if got := r.goes(t, stateComplete); got != "" {
		t.Fatalf("%s runs though the job has to be paused", got)
	}
	if err := r.backstop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.schedules where paused_at is not null`); n != 1 {
		t.Error("the job is not paused")
	}
}

func TestWhatWasOwedBeforeAPauseWaitsAndGoesOnInOrder(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 3, Job{})
	run := r.mustStart(t, pool)
	if err := Pause(t.Context(), pool, "j", PauseConfig{Actor: "ann", Note: "month end"}); err != nil {
		t.Fatal(err)
	}
	if err := Pause(t.Context(), pool, "j", PauseConfig{Actor: "bob"}); !errors.Is(err, ErrPaused) {
		t.Errorf("a second Pause = %v, want ErrPaused", err)
	}
	// The run that is under way may end, but not be tried again.
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateFailed}}); err != nil || !ok[0] {
		t.Fatal(ok, err)
	}
	if got := r.goes(t, stateComplete); got != "" {
		t.Fatalf("%s starts in the pause", got)
	}
	if err := r.backstop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.goes(t, stateComplete); got != "" {
		t.Fatalf("%s starts in the pause after a backstop", got)
	}
	if _, err := Resume(t.Context(), pool, "j", "ann", "none"); err != nil {
		t.Fatal(err)
	}
	for _, want := range keys {
		if got := r.goes(t, stateComplete); got != want {
			t.Errorf("%q runs, want %q", got, want)
		}
	}
	if _, err := Resume(t.Context(), pool, "j", "ann", ""); !errors.Is(err, ErrNotPaused) {
		t.Errorf("a second Resume = %v, want ErrNotPaused", err)
	}
	if n := exec(t, pool, `select count(*) from pawl.audit where actor = 'ann' and action in ('pause', 'resume')`); n != 2 {
		t.Errorf("%d audit rows, want 2", n)
	}
}

func TestARerunIsANewRevisionAndKeepsTheOldOne(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 2, Job{})
	if _, err := Rerun(t.Context(), pool, "j", keys[0], RerunConfig{Actor: "ann", Reason: "late trade"}); !errors.Is(err, ErrPeriodState) {
		t.Errorf("Rerun of an open period = %v, want ErrPeriodState", err)
	}
	r.goes(t, stateComplete)
	if _, err := Rerun(t.Context(), pool, "j", keys[0], RerunConfig{Actor: "ann"}); !errors.Is(err, ErrNoReason) {
		t.Errorf("Rerun without a reason = %v", err)
	}
	rev, err := Rerun(t.Context(), pool, "j", keys[0], RerunConfig{Actor: "ann", Reason: "late trade", RepeatEffects: true})
	if err != nil || rev != 2 {
		t.Fatalf("Rerun = %d, %v, want revision 2", rev, err)
	}
	run := r.mustStart(t, pool)
	if run.Period.Key != keys[0] || run.Revision != 2 || run.Attempt != 1 {
		t.Errorf("%s revision %d attempt %d runs, want the older day's second revision first", run.Period.Key, run.Revision, run.Attempt)
	}
	if got := state(t, pool, keys[0]); got != "complete running" {
		t.Errorf("states %q", got)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where revision = 2 and repeat_effects and origin = 'rerun'`); n != 1 {
		t.Error("the row doesn't say what it is")
	}
	if n := exec(t, pool, `select count(*) from pawl.audit where action = 'rerun' and reason = 'late trade' and period = $1`, keys[0]); n != 1 {
		t.Error("no audit row")
	}
}

func TestOnlyADeadPeriodIsRetried(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 1, Job{MaxRetries: NoRetries})
	for _, c := range []struct{ outcome, fix string }{{"", "owed already"}, {stateComplete, "rerun"}} {
		if c.outcome != "" {
			r.goes(t, c.outcome)
		}
		err := Retry(t.Context(), pool, "j", keys[0], "ann")
		var bad *PeriodStateError
		if !errors.As(err, &bad) || !strings.Contains(bad.Error(), c.fix) {
			t.Errorf("Retry = %v, want it to say %q", err, c.fix)
		}
	}
	if err := Retry(t.Context(), pool, "j", "2001-01-01", "ann"); !errors.Is(err, ErrUnknownPeriod) {
		t.Errorf("Retry of what was never owed = %v", err)
	}
}

func TestACancelledRunCommitsNothingMore(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 2, Job{})
	run := r.mustStart(t, pool)
	if err := Cancel(t.Context(), pool, "j", keys[0], "ann", ""); !errors.Is(err, ErrNoReason) {
		t.Errorf("Cancel without a reason = %v", err)
	}
	if err := Cancel(t.Context(), pool, "j", keys[0], "ann", "wrong file"); err != nil {
		t.Fatal(err)
	}
	if err := fence.Guard(t.Context(), mustBegin(t, pool), run.token); !errors.Is(err, fence.ErrNotHeld) && !errors.Is(err, fence.ErrStale) {
		t.Errorf("guard after the cancel = %v, want a refusal", err)
	}
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}}); err != nil || ok[0] {
		t.Errorf("end after the cancel = %v, %v, want a refusal", ok, err)
	}
	if _, err := r.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.runs where state = 'cancelled' and ended_at is not null`); n != 1 {
		t.Error("the run is not ended as cancelled")
	}
	if got := r.goes(t, stateComplete); got != keys[1] {
		t.Errorf("%q runs next, want %q", got, keys[1])
	}
	if got := state(t, pool, keys[0]); got != "cancelled" {
		t.Errorf("the period is %s", got)
	}
	if err := Cancel(t.Context(), pool, "j", keys[0], "ann", "once more"); !errors.Is(err, ErrPeriodState) {
		t.Errorf("a second Cancel = %v", err)
	}
	if n := exec(t, pool, `select count(*) from pawl.tenures where how = 'forced'`); n != 1 {
		t.Error("the tenure doesn't say that it was forced")
	}
}

func TestATriggerRunsDuringAPause(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.chain(t, 1, Job{})
	if err := Pause(t.Context(), pool, "j", PauseConfig{Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `delete from pawl.periods returning 1`)
	key, err := Trigger(t.Context(), pool, "j", TriggerConfig{Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.goes(t, stateComplete); got != key {
		t.Errorf("%q runs, want %q", got, key)
	}
}

func TestAnActOnAnUnknownJobSaysSo(t *testing.T) {
	t.Parallel()
	_, pool := opened(t)
	for name, act := range map[string]func() error{
		"pause":  func() error { return Pause(t.Context(), pool, "x", PauseConfig{Actor: "ann"}) },
		"resume": func() error { _, err := Resume(t.Context(), pool, "x", "ann", ""); return err },
		"rerun": func() error {
			_, err := Rerun(t.Context(), pool, "x", "k", RerunConfig{Actor: "ann", Reason: "r"})
			return err
		},
		"retry":  func() error { return Retry(t.Context(), pool, "x", "k", "ann") },
		"cancel": func() error { return Cancel(t.Context(), pool, "x", "k", "ann", "r") },
		"backfill": func() error {
			_, err := Backfill(t.Context(), pool, "x", "a", "b", BackfillConfig{Actor: "ann"})
			return err
		},
	} {
		if err := act(); !errors.Is(err, ErrUnknownJob) {
			t.Errorf("%s = %v, want ErrUnknownJob", name, err)
		}
	}
}

func mustBegin(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}
