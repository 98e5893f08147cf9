package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"pawl/fence"
	"pawl/jobs/schedule"
)

// A pod that is restarted under its old name is another process: what it holds is told by the token alone.
func TestAReplicaThatComesBackUnderItsNameIsAnother(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	back := openedOn(t, pool)
	r.cfg.Holder, back.cfg.Holder = "pod-0", "pod-0"
	owes(t, pool, "1")
	old := r.mustStart(t, pool)
	if s, err := back.start(t.Context(), []startRequest{{"L", uuid.New(), 0}}); err != nil || s[0].run != nil {
		t.Fatalf("start beside a live lease of that name = %+v, %v", s, err)
	}
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = 'L' returning 1`)
	if _, err := back.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := back.mustStart(t, pool)
	if next.token.Seq <= old.token.Seq {
		t.Errorf("token %d after %d", next.token.Seq, old.token.Seq)
	}
	until := exec(t, pool, `select extract(epoch from expires_at)::bigint from pawl.locks where name = 'L'`)
	if ok, err := r.end(t.Context(), []endRequest{{run: old, outcome: stateComplete}}); err != nil || ok[0] {
		t.Errorf("the end of the old process = %v, %v, want a refusal", ok, err)
	}
	if err := fence.Do(t.Context(), pool, old.token, func(pgx.Tx) error { return nil }); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a write of the old process = %v, want ErrStale", err)
	}
	if err := r.repo.Release(t.Context(), old.lease); err == nil {
		t.Error("the old process has released a lease that isn't its own")
	}
	if n := exec(t, pool, `select extract(epoch from expires_at)::bigint from pawl.locks where name = 'L' and token = $1`, next.token.Seq); n != until {
		t.Error("the old process has moved the end of its successor's lease")
	}
	if ok, err := back.end(t.Context(), []endRequest{{run: next, outcome: stateComplete}}); err != nil || !ok[0] {
		t.Errorf("the end of the new process = %v, %v", ok, err)
	}
}

// Shutdowns cost nothing, however many; an error and a crash do.
func TestTenShutdownsCostNoAttempt(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{MaxRetries: 1})[0]
	r.goes(t, stateFailed)
	for range 10 { // of the last run that is left
		exec(t, pool, `update pawl.periods set not_before = null where key = $1 returning 1`, key)
		if got := r.goes(t, stateDrained); got != key {
			t.Fatalf("after a shutdown %q may run, want %s", got, key)
		}
	}
	if n := exec(t, pool, `select attempts from pawl.periods where key = $1`, key); n != 1 {
		t.Errorf("an error and ten shutdowns cost %d attempts, want 1", n)
	}
	exec(t, pool, `update pawl.periods set not_before = null where key = $1 returning 1`, key)
	r.mustStart(t, pool)
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = 'L' returning 1`)
	if _, err := r.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where key = $1 and state = 'dead' and attempts = 2`, key); n != 1 {
		t.Error("an error and a crash didn't use up two attempts")
	}
	for outcome, want := range map[string]int64{"drained": 10, "failed": 1, "lost": 1} {
		if n := exec(t, pool, `select count(*) from pawl.runs where state = $1`, outcome); n != want {
			t.Errorf("%d runs are %s, want %d", n, outcome, want)
		}
	}
}

// Nobody can raise an alarm about what leaves no trace: a tick that doesn't run has a row and is counted, with its reason.
func TestTicksAreCountedByWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.stored(t, Job{Name: "five", Schedule: "*/5 * * * *"}, utcTime(t, "2026-09-16T00:00Z"))
	r.planAt(t, "five", utcTime(t, "2026-09-17T00:00Z"))
	r.stored(t, Job{Name: "all", Schedule: "0 * * * *", CatchUp: schedule.CatchUpAll}, utcTime(t, "2026-09-16T00:00Z"))
	r.planAt(t, "all", utcTime(t, "2026-09-17T12:30Z"))
	r.stored(t, Job{Name: "late", Schedule: "0 10 * * *", CatchUp: schedule.CatchUpAll, StartWithin: 5 * time.Minute}, utcTime(t, "2026-09-15T00:00Z"))
	r.planAt(t, "late", utcTime(t, "2026-09-16T10:04Z"))
	for _, c := range []struct {
		job, state, reason string
		ticks              int64
	}{
		{"five", "missed", "catch_up", 287},
		{"five", "open", "", 1},
		{"all", "missed", "window", 12},
		{"all", "open", "", 24},
		{"late", "missed", "too_late", 1},
		{"late", "open", "", 1},
	} {
		if n := int64(testutil.ToFloat64(r.metrics.Periods.WithLabelValues(c.job, c.state, c.reason))); n != c.ticks {
			t.Errorf("%s: %d ticks are counted as %s %s, want %d", c.job, n, c.state, c.reason, c.ticks)
		}
		if n := exec(t, pool, `select coalesce(sum(ticks), 0) from pawl.periods where job = $1 and state = $2 and coalesce(reason, '') = $3`, c.job, c.state, c.reason); n != c.ticks {
			t.Errorf("%s: rows of %d ticks are %s %s, want %d", c.job, n, c.state, c.reason, c.ticks)
		}
	}
}

// A caller hears that its request wasn't needed, or came while the work was under way.
func TestATriggerOfARunningPeriodSaysSo(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	j := r.stored(t, Job{Name: "j", Schedule: "@daily", Lock: "L"}, time.Now())
	j.TTL = time.Minute
	r.jobs["j"] = j
	key, err := Trigger(t.Context(), pool, "j", TriggerConfig{Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	run := r.mustStart(t, pool)
	if got, err := Trigger(t.Context(), pool, "j", TriggerConfig{Actor: "ann"}); !errors.Is(err, ErrRunning) || got != key {
		t.Errorf("Trigger while it runs = %q, %v, want ErrRunning of %s", got, err, key)
	}
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}}); err != nil || !ok[0] {
		t.Fatalf("end = %v, %v", ok, err)
	}
	if got, err := Trigger(t.Context(), pool, "j", TriggerConfig{Actor: "ann"}); !errors.Is(err, ErrComplete) || got != key {
		t.Errorf("Trigger of what is complete = %q, %v, want ErrComplete of %s", got, err, key)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods`); n != 1 {
		t.Errorf("%d periods, want the one", n)
	}
}

// Indexes that help people to look must not make starts dearer: what a start writes to its period is in none of them.
func TestAStartTouchesNoIndexOfPeriods(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	have := r.handled()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	args := []any{[]string{"L"}, []string{uuid.NewString()}, []int64{0}, "h", have.names, have.ttls, int64(2000), []int64{}, int64(10000)}
	if _, err := tx.Exec(t.Context(), startSQL, args...); err != nil {
		t.Fatal(err)
	}
	const cheap = `select 100 * pg_stat_get_xact_tuples_updated('pawl.periods'::regclass) + pg_stat_get_xact_tuples_hot_updated('pawl.periods'::regclass)`
	if n := exec(t, tx, cheap); n != 101 {
		t.Errorf("%d updates of periods, %d of them without the indexes; want one, and that without", n/100, n%100)
	}
}
