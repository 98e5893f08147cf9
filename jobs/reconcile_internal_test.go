package jobs

import (
	"context"
	"slices"
	"testing"
	"time"
)

// As long as its call is under way the receiver has it, and we don't know it yet.
func TestAReconciliationLeavesAloneWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ours := map[string]EffectInfo{
		"young": {State: EffectIntended, At: now}, "old": {State: EffectIntended, At: now.Add(-time.Hour)}, "done": {State: EffectDone, At: now},
	}
	f := Reconciliation{}.judge(now.Add(-time.Minute), ours, []Receipt{{IdempotencyKey: "young"}, {IdempotencyKey: "old"}, {IdempotencyKey: "done"}, {IdempotencyKey: "nobody's"}})
	if !slices.Equal(f.keys, []string{"old", "nobody's"}) || !slices.Equal(f.sameKeys, []string{"done"}) {
		t.Errorf("%q differ and %q are the same", f.keys, f.sameKeys)
	}
}

// It was down for longer than it looks back: what was done in between is compared all the same.
func TestAReconciliationLooksBackToTheLastOne(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1", "2", "3")
	var from, to time.Time
	j, err := Reconcile(Job{Name: "check"}, Reconciliation{Of: "payout", Since: time.Hour, Settle: time.Minute, List: func(_ context.Context, a, b time.Time, _ func(Receipt) error) error {
		from, to = a, b
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ago       string
		low, high time.Duration
	}{{"0 s", time.Hour, time.Hour}, {"10 min", time.Hour, time.Hour}, {"3 days", 72*time.Hour + time.Minute, 72*time.Hour + 2*time.Minute}} {
		exec(t, pool, `with a as (update pawl.runs set started_at = clock_timestamp() - $1::text::interval returning 1) select count(*) from a`, c.ago)
		if err := j.Func(t.Context(), r.keep(t, r.mustStart(t, pool))); err != nil {
			t.Fatal(err)
		}
		if got := to.Sub(from); got < c.low || got > c.high {
			t.Errorf("%s after the last it looks back %s, want %s", c.ago, got, c.low)
		}
	}
}
