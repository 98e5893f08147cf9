package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

func TestTheOnlyEffectOfAPeriodHasThePeriodsKey(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
		own, err := run.EffectKey(ctx)
		if err != nil {
			return err
		}
		_, err = run.EffectOf(ctx, jobs.EffectConfig{Key: "all", Only: true, Request: "a&b", Send: func(_ context.Context, key string) (any, error) {
			if run.Attempt == 1 && key != own {
				t.Errorf("key %q, and the run's is %q", key, own)
			}
			res, err := r.pay(key, 100)
			if run.Attempt == 1 {
				err = fmt.Errorf("%w: account is closed", jobs.ErrFailed)
			}
			return res, err
		}})
		return err
	}))
	until(t, pool, 1, completeSQL, "payout")
	period := keyOf(t, pool, "payout")
	if calls, want := r.keys(), []string{"payout:" + period, "payout:" + period + ":try-2"}; !slices.Equal(calls, want) {
		t.Errorf("called with %q, want %q", calls, want)
	}
	sends, err := jobs.RerunEffects(t.Context(), pool, "payout", period)
	if want := (jobs.Effect{Request: `"a&b"`, Key: "payout:" + period + ":rev-2"}); err != nil || len(sends) != 1 || sends[0] != want {
		t.Errorf("a rerun that repeats lists %+v, %v, want %+v", sends, err, want)
	}
}

// Nobody can have got it: neither is a person needed, nor does the receiver's memory run out, nor must the request stay.
func TestWhatWasNeverSentMayBeChanged(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
		_, err := run.EffectOf(ctx, jobs.EffectConfig{Key: "acme", Request: run.Attempt, KeyLifetime: jobs.NoKeys, Send: func(ctx context.Context, key string) (any, error) {
			if run.Attempt < 3 {
				_, err := pool.Exec(ctx, `update pawl.effects set at = at - interval '48 h'`)
				return nil, errors.Join(fmt.Errorf("%w: connection refused", jobs.ErrNotSent), err)
			}
			return r.pay(key, 100)
		}})
		return err
	}))
	until(t, pool, 1, completeSQL, "payout")
	if e := open(t, pool, jobs.EffectDone); e.Sends != 1 || e.Try != 1 || string(e.Request) != "3" || e.Error != "" {
		t.Errorf("recorded %+v", e)
	}
	if calls := r.keys(); len(calls) != 1 || calls[0] != "payout:"+keyOf(t, pool, "payout")+"/acme" {
		t.Errorf("called with %q", calls)
	}
}

func TestWhatMayBeSentAgainNeedsNobodysDecision(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
		_, err := run.EffectOf(ctx, jobs.EffectConfig{Key: "acme", OnUncertain: jobs.UncertainAsk, Send: func(_ context.Context, key string) (any, error) {
			res, err := r.pay(key, 100)
			switch run.Attempt {
			case 1:
				err = fmt.Errorf("%w: 503", jobs.ErrAgain)
			case 2:
				if e := open(t, pool, jobs.EffectIntended); e.Error != "jobs: effect may be sent again: 503" || e.Sends != 2 {
					t.Errorf("recorded %+v", e)
				}
				err = errors.New("reply lost")
			}
			return res, err
		}})
		return err
	}))
	until(t, pool, 1, deadSQL, "payout")
	if calls := r.keys(); len(calls) != 2 || calls[0] != calls[1] {
		t.Errorf("called with %q, want the same key twice, and then nobody knows", calls)
	}
	if e := open(t, pool, jobs.EffectUncertain); e.Sends != 2 {
		t.Errorf("recorded %+v", e)
	}
}

func TestAnEffectIsValidForSoLongFromItsFirstIntentOn(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
		_, err := run.EffectOf(ctx, jobs.EffectConfig{Key: "acme", ValidFor: time.Hour, Send: func(ctx context.Context, key string) (any, error) {
			_, _ = r.pay(key, 100)
			_, err := pool.Exec(ctx, `update pawl.effects set at = at - interval '1 h', valid_until = valid_until - interval '1 h'`)
			return nil, errors.Join(jobs.ErrFailed, err)
		}})
		if errors.Is(err, jobs.ErrExpired) {
			return nil
		}
		return err
	}))
	until(t, pool, 1, completeSQL, "payout")
	if e := open(t, pool, ""); e.ValidUntil == nil || e.ValidUntil.Sub(e.At).Round(time.Second) != time.Hour || len(r.keys()) != 1 {
		t.Errorf("sent %d times, recorded %+v", len(r.keys()), e)
	}
}

// A rerun that can't go on is cancelled and followed by another; what has never been complete is owed, not rerun.
func TestOnlyWhatWasCompleteIsRerunAfterItWasCancelled(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	start(t, jobs.Config{Pool: pool}, once("good", func(_ context.Context, run *jobs.Run) error {
		if run.Revision == 2 {
			return jobs.ErrNoRetry
		}
		return nil
	}), once("bad", func(context.Context, *jobs.Run) error { return jobs.ErrNoRetry }))
	until(t, pool, 1, completeSQL, "good")
	until(t, pool, 1, deadSQL, "bad")
	key, c := keyOf(t, pool, "good"), jobs.RerunConfig{Actor: "ann", Reason: "once more", RepeatEffects: true}
	if _, err := jobs.Rerun(t.Context(), pool, "good", key, c); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 1, deadSQL, "good")
	for _, job := range []string{"good", "bad"} {
		if err := jobs.Cancel(t.Context(), pool, job, key, "ann", "it can't go on"); err != nil {
			t.Fatal(err)
		}
	}
	var state *jobs.PeriodStateError
	if _, err := jobs.Rerun(t.Context(), pool, "bad", key, c); !errors.As(err, &state) {
		t.Errorf("what was never complete: %v", err)
	}
	if revision, err := jobs.Rerun(t.Context(), pool, "good", key, c); err != nil || revision != 3 {
		t.Errorf("what was complete: revision %d, %v", revision, err)
	}
	until(t, pool, 2, completeSQL, "good")
}
