package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

func TestAnEffectIsNotDecidedWhileARunIsAtIt(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	begun, release := make(chan struct{}), make(chan struct{})
	start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
		_, err := run.Effect(ctx, "acme", 100, func(context.Context, string) (any, error) { close(begun); <-release; return nil, nil })
		return err
	}))
	<-begun
	e := open(t, pool, jobs.EffectIntended)
	err := jobs.DecideEffect(t.Context(), pool, e.ID, jobs.EffectDecision{State: jobs.EffectFailed}, "ann", "too slow for me")
	var state *jobs.EffectStateError
	if !errors.As(err, &state) || !strings.Contains(err.Error(), "a run is at its period") {
		t.Errorf("DecideEffect = %v", err)
	}
	close(release)
	until(t, pool, 1, completeSQL, "payout")
}

// The first run dies with its intent; when the next comes the receiver may have forgotten the key.
func TestAfterTheKeysLifetimeTheOutcomeIsAskedForAndNothingIsSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		probe jobs.EffectFunc
		state string
	}{
		"it has it":  {func(context.Context, string) (any, error) { return "po_1", nil }, jobs.EffectDone},
		"it has not": {func(context.Context, string) (any, error) { return nil, jobs.ErrAbsent }, jobs.EffectFailed},
		"no answer":  {func(context.Context, string) (any, error) { return nil, errors.New("503") }, jobs.EffectUncertain},
		"no probe":   {nil, jobs.EffectUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, r := pgtest.New(t), &receiver{}
			start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
				if run.Attempt == 3 {
					return jobs.ErrNoRetry
				}
				_, err := run.EffectOf(ctx, jobs.EffectConfig{Key: "acme", Request: 100, Probe: c.probe, OnUncertain: jobs.UncertainRetry, Send: func(ctx context.Context, key string) (any, error) {
					_, _ = r.pay(key, 100)
					_, err := pool.Exec(ctx, `update pawl.effects set at = at - interval '24 h'`)
					return nil, errors.Join(errors.New("reply lost"), err)
				}})
				return err
			}))
			until(t, pool, 1, `select count(*) from pawl.periods where ended_at is not null`)
			if n := len(r.keys()); n != 1 {
				t.Errorf("sent %d times, want once", n)
			}
			if e := open(t, pool, ""); e.State != c.state {
				t.Errorf("it is %s, want %s", e.State, c.state)
			}
		})
	}
}

func TestWhatIsNotValidAnyMoreIsNotSent(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
		_, err := run.EffectOf(ctx, jobs.EffectConfig{Key: "acme", ValidUntil: time.Now().Add(-time.Minute), Send: func(_ context.Context, key string) (any, error) { return r.pay(key, 1) }})
		if !errors.Is(err, jobs.ErrExpired) {
			t.Errorf("EffectOf = %v", err)
		}
		_, err = run.EffectOf(ctx, jobs.EffectConfig{Key: "bolt", ValidUntil: time.Now().Add(time.Second), Send: func(ctx context.Context, _ string) (any, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}})
		if !errors.Is(err, jobs.ErrExpired) {
			t.Errorf("a call that takes longer = %v", err)
		}
		return nil
	}))
	until(t, pool, 1, completeSQL, "payout")
	if n := len(r.keys()); n != 0 {
		t.Errorf("sent %d times", n)
	}
}

func TestAnUncertainEffectIsProbedBeforeItIsSentAgain(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	var probes int
	start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
		res, err := run.EffectOf(ctx, jobs.EffectConfig{Key: "acme", Request: 100, Send: func(_ context.Context, key string) (any, error) {
			_, _ = r.pay(key, 100)
			if len(r.keys()) == 1 {
				return nil, errors.New("reply lost")
			}
			return "second", nil
		}, Probe: func(context.Context, string) (any, error) {
			if probes++; probes < 3 {
				return nil, fmt.Errorf("%w: 404", jobs.ErrAbsent) // once at the end of the first call, once before the second
			}
			return "probed", nil
		}})
		if err == nil && string(res) != `"second"` {
			t.Errorf("response %s", res)
		}
		return err
	}))
	until(t, pool, 1, completeSQL, "payout")
	if calls := r.keys(); probes != 2 || len(calls) != 2 || calls[0] != calls[1] {
		t.Errorf("%d probes, calls with %q: want 2, and the same key twice", probes, calls)
	}
}

func TestAResponseThatCantBeKeptIsDoneAllTheSame(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
		for key, response := range map[string]any{"big": strings.Repeat("x", 1<<20), "func": func() {}, "nul": "a\x00b"} {
			if _, err := run.Effect(ctx, key, nil, func(context.Context, string) (any, error) { return response, nil }); err != nil {
				return err
			}
		}
		return nil
	}))
	until(t, pool, 1, completeSQL, "payout")
	if n := count(t, pool, `select count(*) from pawl.effects where state = 'done'`); n != 3 {
		t.Errorf("%d are done, want 3", n)
	}
	if list, err := jobs.NewHistory(pool).Effects(t.Context(), jobs.EffectFilter{Job: "payout", Limit: 10}); err != nil || len(list) != 3 {
		t.Errorf("listed %d, %v", len(list), err)
	}
}

func TestAnEffectOfARenamedJobIsFound(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	pay := func(ctx context.Context, run *jobs.Run) error {
		_, err := run.Effect(ctx, "acme", 100, func(_ context.Context, key string) (any, error) { return r.pay(key, 100) })
		if err == nil && run.Job == "payout" {
			return jobs.ErrNoRetry
		}
		return err
	}
	_, _, stop := start(t, jobs.Config{Pool: pool}, once("payout", pay))
	until(t, pool, 1, deadSQL, "payout")
	_ = stop()
	j := once("payouts", pay)
	j.RenameFrom = "payout"
	start(t, jobs.Config{Pool: pool}, j)
	until(t, pool, 1, deadSQL, "payouts")
	if err := jobs.Retry(t.Context(), pool, "payouts", keyOf(t, pool, "payouts"), "ann"); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 1, completeSQL, "payouts")
	if n := len(r.keys()); n != 1 {
		t.Errorf("paid %d times under two names", n)
	}
}

// What was asked for under one name and is asked for again under another is one request to who is asked.
func TestARenameKeepsTheKeyOfWhatAPeriodSends(t *testing.T) {
	t.Parallel()
	pool, keys := pgtest.New(t), make(chan string, 10)
	send := func(ctx context.Context, run *jobs.Run) error {
		key, err := run.EffectKey(ctx)
		if keys <- key; err == nil && run.Job == "payout" {
			return jobs.ErrNoRetry
		}
		return err
	}
	_, _, stop := start(t, jobs.Config{Pool: pool}, once("payout", send))
	until(t, pool, 1, deadSQL, "payout")
	_ = stop()
	first := <-keys
	j := once("payouts", send)
	j.RenameFrom = "payout"
	start(t, jobs.Config{Pool: pool}, j)
	until(t, pool, 1, deadSQL, "payouts")
	period := keyOf(t, pool, "payouts")
	if err := jobs.Retry(t.Context(), pool, "payouts", period, "ann"); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 1, completeSQL, "payouts")
	if again := <-keys; again != first {
		t.Errorf("sent with %q, and after the rename with %q", first, again)
	}
	if _, err := jobs.Rerun(t.Context(), pool, "payouts", period, jobs.RerunConfig{Actor: "ann", Reason: "once more"}); err != nil {
		t.Fatal(err)
	}
	if again := <-keys; again != first {
		t.Errorf("a rerun after the rename sends with %q, want %q", again, first)
	}
}

func TestEffectsWorkInSnapshots(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		pool, r := pgtest.New(t), &receiver{}
		j := once("payout", func(ctx context.Context, run *jobs.Run) error {
			for i := range 5 {
				run.Progress(int64(i), 5)
				if _, err := run.Effect(ctx, fmt.Sprint("m", i), i, func(_ context.Context, key string) (any, error) { return r.pay(key, i) }); err != nil {
					return err
				}
			}
			return run.Complete(ctx, func(tx pgx.Tx) error {
				_, err := run.Enqueue(ctx, tx, jobs.Message{Outbox: "mail", Key: "k"})
				return err
			})
		})
		j.Isolation = level
		start(t, jobs.Config{Pool: pool}, j, mail((&inbox{}).take))
		until(t, pool, 1, completeSQL, "mail")
		if n := count(t, pool, `select count(*) from pawl.runs where job = 'payout'`); n != 1 || len(r.keys()) != 5 {
			t.Errorf("%s: %d runs, %d calls", level, n, len(r.keys()))
		}
	}
}
