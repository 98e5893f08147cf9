package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

func TestAReconciliationFindsWhatTheTwoSidesSayDifferently(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	var mu sync.Mutex
	theirs := map[string]int{}
	check, err := jobs.Reconcile(jobs.Job{Name: "check", Schedule: "@manual"}, jobs.Reconciliation{
		Of: "payout", Settle: time.Nanosecond,
		List: func(_ context.Context, _, _ time.Time, each func(jobs.Receipt) error) error {
			mu.Lock()
			defer mu.Unlock()
			for key, cents := range theirs {
				if err := each(jobs.Receipt{IdempotencyKey: key, Detail: fmt.Sprint(cents), Body: cents}); err != nil {
					return err
				}
			}
			return nil
		},
		Differs: func(ours jobs.EffectInfo, theirs jobs.Receipt) string {
			if string(ours.Request) != fmt.Sprint(theirs.Body) {
				return fmt.Sprintf("we asked for %s, they have %v", ours.Request, theirs.Body)
			}
			return ""
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	start(t, jobs.Config{Pool: pool}, check, once("payout", func(ctx context.Context, run *jobs.Run) error {
		for i, m := range []string{"fine", "lost", "other", "doubt"} {
			_, err := run.Effect(ctx, m, i, func(_ context.Context, key string) (any, error) {
				if m == "doubt" {
					return nil, errors.New("no reply")
				}
				return r.pay(key, i)
			})
			if err != nil && m != "doubt" {
				return err
			}
		}
		return nil
	}))
	until(t, pool, 1, completeSQL, "payout")
	base := "payout:" + keyOf(t, pool, "payout") + "/"
	compare := func(n int, got map[string]int) map[string]string {
		mu.Lock()
		theirs = got
		mu.Unlock()
		if _, err := jobs.Trigger(t.Context(), pool, "check", jobs.TriggerConfig{Actor: "ann"}); err != nil {
			t.Fatal(err)
		}
		until(t, pool, n, completeSQL, "check")
		list, err := jobs.NewHistory(pool).Unmatched(t.Context(), "payout", 0)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, d := range list {
			found[d.IdempotencyKey] = d.Kind + ": " + d.Detail
		}
		return found
	}
	found := compare(1, map[string]int{base + "fine": 0, base + "other": 7, base + "doubt": 3, "payout:token-42/fine": 0})
	want := map[string]string{
		base + "lost": "absent: 1", base + "other": "differs: we asked for 2, they have 7",
		base + "doubt": "stray: for us it is uncertain: 3", "payout:token-42/fine": "stray: 0",
	}
	if fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("found %v\nwant  %v", found, want)
	}
	const unmatched = `select count(*) from pawl.events where kind = 'unmatched' and job = 'check' and detail @> '{"of": "payout", "new": 4, "all": 4, "absent": 1, "stray": 2, "differs": 1}'`
	if n := count(t, pool, unmatched); n != 1 {
		t.Errorf("%d events tell of it, want 1", n)
	}
	found = compare(2, map[string]int{base + "fine": 0, base + "other": 2, base + "lost": 1})
	delete(want, base+"lost")
	delete(want, base+"other")
	if fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("once they are in order: %v\nwant %v", found, want)
	}
	if n := count(t, pool, `select count(*) from pawl.events where kind = 'unmatched'`); n != 1 {
		t.Errorf("%d events, want none for what was told before", n)
	}
	compare(3, map[string]int{base + "fine": 1, base + "other": 2, base + "lost": 1})
	if n := count(t, pool, `select count(*) from pawl.events where kind = 'unmatched' and detail @> '{"new": 1, "all": 3, "differs": 1}' and detail ->> 'first' like '%/fine'`); n != 1 {
		t.Errorf("%d events tell of a new one, want 1", n)
	}
}

func TestAReconciliationThatCantWorkIsRefused(t *testing.T) {
	t.Parallel()
	list := func(context.Context, time.Time, time.Time, func(jobs.Receipt) error) error { return nil }
	for _, c := range []jobs.Reconciliation{{List: list}, {Of: "payout"}, {Of: "payout", List: list, Since: time.Minute}} {
		var bad *jobs.ConfigError
		if _, err := jobs.Reconcile(jobs.Job{Name: "check"}, c); !errors.As(err, &bad) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
