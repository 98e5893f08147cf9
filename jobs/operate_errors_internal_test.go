package jobs

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// What can't be acted on says so by its type, with the facts that a page or a caller needs, and changes nothing.
func TestAnActThatThePeriodsStateForbidsIsATypedErrorWithTheFacts(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	j := r.chain(t, 0, Job{MaxRetries: NoRetries})
	if len(j) != 0 {
		t.Fatalf("%v", j)
	}
	key, err := Trigger(t.Context(), pool, "j", TriggerConfig{Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	trigger := func() error {
		_, err := Trigger(t.Context(), pool, "j", TriggerConfig{Actor: "bob"})
		return err
	}
	rerun := func() error {
		_, err := Rerun(t.Context(), pool, "j", key, RerunConfig{Actor: "bob", Reason: "late"})
		return err
	}
	effects := func() error { _, err := RerunEffects(t.Context(), pool, "j", key); return err }
	retry := func() error { return Retry(t.Context(), pool, "j", key, "bob") }
	cancel := func() error { return Cancel(t.Context(), pool, "j", key, "bob", "late") }
	sentinels := map[string]error{stateComplete: ErrComplete, stateRunning: ErrRunning, stateOpen: ErrOwed}
	check := func(state string, run uuid.UUID, token int64, act string, f func() error, fix string) {
		t.Helper()
		err := f()
		var e *PeriodStateError
		if !errors.As(err, &e) {
			t.Errorf("%s of what is %s = %v", act, state, err)
			return
		}
		if want := (PeriodStateError{act, "j", key, 1, state, run, token, e.Fix}); *e != want {
			t.Errorf("%s of what is %s = %+v, want %+v", act, state, *e, want)
		}
		for s, sentinel := range sentinels {
			if errors.Is(err, sentinel) != (s == state) || !errors.Is(err, ErrPeriodState) {
				t.Errorf("%s of what is %s: Is(%v) = %t", act, state, sentinel, errors.Is(err, sentinel))
			}
		}
		if want := "jobs: j " + key + " is "; !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), strings.ReplaceAll(fix, "KEY", key)) {
			t.Errorf("%s of what is %s says %q, want %q", act, state, err, fix)
		}
	}
	check(stateOpen, uuid.Nil, 0, "retry", retry, "owed already: follow it with: pawl why j KEY")
	check(stateOpen, uuid.Nil, 0, "rerun", rerun, "only what is complete is rerun; follow it with: pawl why j KEY")

	run := r.mustStart(t, pool)
	check(stateRunning, run.ID, run.token.Seq, "trigger", trigger, "follow it with: pawl why j KEY")
	check(stateRunning, run.ID, run.token.Seq, "retry", retry, "follow it with: pawl why j KEY")
	check(stateRunning, run.ID, run.token.Seq, "rerun", rerun, "follow it with: pawl why j KEY")
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateFailed}}); err != nil || !ok[0] {
		t.Fatalf("end = %v, %v", ok, err)
	}
	check(stateDead, run.ID, run.token.Seq, "rerun", rerun, "to owe it again: pawl job retry j KEY")
	check(stateDead, run.ID, run.token.Seq, "rerun", effects, "to owe it again: pawl job retry j KEY")
	if err := retry(); err != nil {
		t.Fatal(err)
	}
	run = r.mustStart(t, pool)
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}}); err != nil || !ok[0] {
		t.Fatalf("end = %v, %v", ok, err)
	}
	check(stateComplete, run.ID, run.token.Seq, "trigger", trigger, "if it has to: pawl job rerun j KEY --reason TEXT")
	check(stateComplete, run.ID, run.token.Seq, "retry", retry, "if it has to: pawl job rerun j KEY --reason TEXT")
	check(stateComplete, run.ID, run.token.Seq, "cancel", cancel, "there is nothing to cancel")
	for state, fix := range map[string]string{"held": "pawl backfill j --from KEY --to KEY", "missed": "pawl backfill j", "skipped": "pawl backfill j", "cancelled": "pawl backfill j"} {
		if _, err := pool.Exec(t.Context(), `update pawl.periods set state = $1 where key = $2`, state, key); err != nil {
			t.Fatal(err)
		}
		check(state, run.ID, run.token.Seq, "retry", retry, fix)
		check(state, run.ID, run.token.Seq, "rerun", rerun, fix)
	}
	if n := exec(t, pool, `select count(*) from pawl.audit where actor = 'bob' and action <> 'retry'`); n != 0 {
		t.Errorf("%d rows of the audit tell of acts that were refused", n)
	}
}

// Under a snapshot a completion takes neither the lock's row nor its lane: the cancellation waits for the period's row.
func TestACancellationThatComesTooLateSaysSoAlsoUnderASnapshot(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{Isolation: pgx.RepeatableRead})[0]
	run := r.beginOn(t, "L")
	cancelled := make(chan error, 1)
	err := run.Complete(t.Context(), func(tx pgx.Tx) error {
		if err := run.completePeriod(t.Context(), tx); err != nil { // as it does a moment later
			return err
		}
		exec(t, tx, `with a as (update pawl.periods set state = 'running' where job = 'j' and key = $1 returning 1) select count(*) from a`, key)
		go func() { cancelled <- Cancel(context.WithoutCancel(t.Context()), pool, "j", key, "ann", "wrong input") }()
		waitForLock(t, pool)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-cancelled; !errors.Is(err, ErrComplete) {
		t.Errorf("Cancel = %v, want ErrComplete", err)
	}
	wantStates(t, pool, key, stateComplete)
	if n := exec(t, pool, `select count(*) from pawl.audit where action = 'cancel'`); n != 0 {
		t.Error("the audit says that it was cancelled")
	}
}
