package jobs

import (
	"errors"
	"testing"
	"time"
)

// What was seen is compared in the act's own transaction: the page may be as old as it likes.
func TestAnActOnWhatHasChangedDoesNothing(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 3, Job{MaxRetries: NoRetries})
	ctx := t.Context()
	act := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrChanged) {
			t.Errorf("%s = %v, want ErrChanged", what, err)
		}
	}
	act("cancel of another state", CancelAs(ctx, pool, "j", keys[2], By{"ann", "why", Seen{State: "running"}}))
	act("cancel of another run", CancelAs(ctx, pool, "j", keys[2], By{"ann", "why", Seen{State: "open", Token: 5}}))
	r.goes(t, stateFailed)
	act("retry of another revision", RetryAs(ctx, pool, "j", keys[0], By{"ann", "", Seen{Revision: 2}}))
	r.goes(t, stateComplete)
	_, err := Rerun(ctx, pool, "j", keys[1], RerunConfig{Actor: "ann", Reason: "why", Seen: Seen{Revision: 3}})
	act("rerun of another revision", err)
	_, err = Trigger(ctx, pool, "j", TriggerConfig{Actor: "ann", Seen: Seen{Key: "1999-01-01"}})
	act("trigger of another day", err)
	_, err = Backfill(ctx, pool, "j", keys[0], keys[0], BackfillConfig{Actor: "ann", Seen: Seen{Owed: 2}})
	act("backfill of another list", err)
	if err := Pause(ctx, pool, "j", PauseConfig{Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	_, err = ResumeAs(ctx, pool, "j", By{"ann", "", Seen{PausedAt: time.Now().Add(-time.Hour)}}, "")
	act("resume of another pause", err)
	if got := texts(t, pool, `select action from pawl.audit`); len(got) != 1 {
		t.Errorf("audit: %v", got)
	}

	if err := RetryAs(ctx, pool, "j", keys[0], By{"ann", "the disk is there", Seen{Revision: 1, State: "dead"}}); err != nil {
		t.Error(err)
	}
	if got := texts(t, pool, `select concat_ws(' ', actor, reason) from pawl.audit where action = 'retry'`); len(got) != 1 || got[0] != "ann the disk is there" {
		t.Errorf("audit: %v", got)
	}
}

func TestTheLatestRevisionAndTheCurrentPeriodAreRead(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 1, Job{})
	r.goes(t, stateComplete)
	if _, err := Rerun(t.Context(), pool, "j", keys[0], RerunConfig{Actor: "ann", Reason: "why"}); err != nil {
		t.Fatal(err)
	}
	h := NewHistory(pool)
	if p, err := h.Latest(t.Context(), "j", keys[0]); err != nil || p.Revision != 2 || p.State != "open" || p.Start.Location() != time.UTC {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := h.Latest(t.Context(), "j", "1999-01-01"); !errors.Is(err, ErrUnknownPeriod) {
		t.Errorf("%v, want ErrUnknownPeriod", err)
	}
	key, err := h.Current(t.Context(), "j")
	if err != nil {
		t.Fatal(err)
	}
	if owed, err := Trigger(t.Context(), pool, "j", TriggerConfig{Actor: "ann"}); err != nil || owed != key {
		t.Errorf("%s is owed, current is %s, %v", owed, key, err)
	}
	if _, err := h.Current(t.Context(), "nobody"); !errors.Is(err, ErrUnknownJob) {
		t.Errorf("%v, want ErrUnknownJob", err)
	}
}
