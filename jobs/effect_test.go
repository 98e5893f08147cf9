package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
	"pawl/jobs"
)

// receiver is a system outside that keeps keys.
type receiver struct {
	mu    sync.Mutex
	calls []string // the keys, in the order in which they came
	paid  map[string]int
}

func (r *receiver) pay(key string, amount int) (any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paid == nil {
		r.paid = map[string]int{}
	}
	r.calls = append(r.calls, key)
	r.paid[key] = amount
	return map[string]any{"id": "po_" + key}, nil
}

func (r *receiver) keys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// once is a job of one period, that of yesterday, which is tried again at once.
func once(name string, f jobs.Func) jobs.Job {
	return jobs.Job{Name: name, Schedule: "@daily", Start: daysAgo(1), RetryDelay: time.Millisecond, RetryMaxDelay: time.Millisecond, Func: f}
}

const deadSQL = `select count(*) from pawl.periods where job = $1 and state = 'dead'`

// keyOf is the key of the job's last period.
func keyOf(t *testing.T, pool *pgxpool.Pool, job string) (key string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `select key from pawl.periods where job = $1 order by scheduled_at desc, revision desc limit 1`, job).Scan(&key); err != nil {
		t.Fatal(err)
	}
	return key
}

func open(t *testing.T, pool *pgxpool.Pool, state string) jobs.EffectInfo {
	t.Helper()
	list, err := jobs.NewHistory(pool).Effects(t.Context(), jobs.EffectFilter{State: state})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d effects are %s, %v", len(list), state, err)
	}
	return list[0]
}

func TestAnEffectThatIsDoneGivesItsResponseWithoutACall(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	got := make(chan string, 10)
	start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
		for _, m := range []string{"acme", "bolt"} {
			res, err := run.Effect(ctx, m, map[string]any{"cents": 100}, func(_ context.Context, key string) (any, error) { return r.pay(key, 100) })
			if err != nil {
				return err
			}
			got <- string(res)
		}
		if run.Attempt == 1 {
			return errors.New("crash")
		}
		return nil
	}))
	until(t, pool, 1, completeSQL, "payout")
	period := keyOf(t, pool, "payout")
	want := []string{"payout:" + period + "/acme", "payout:" + period + "/bolt"}
	if calls := r.keys(); !slices.Equal(calls, want) {
		t.Errorf("the receiver was called with %q, want each key once: %q", calls, want)
	}
	first, second := []string{<-got, <-got}, []string{<-got, <-got}
	if !slices.Equal(first, second) || !strings.Contains(first[0], "po_payout:") {
		t.Errorf("responses %q, then %q", first, second)
	}
}

func TestASuccessorThatFindsOnlyAnIntentSendsAgainWithTheSameKey(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	begun, refused := make(chan int64, 1), make(chan error, 1)
	start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
		_, err := run.Effect(ctx, "acme", 100, func(ctx context.Context, key string) (any, error) {
			res, err := r.pay(key, 100)
			if run.Attempt == 1 { // it stands still, and its reply comes when its lease is another's
				begun <- run.Token().Seq
				<-ctx.Done()
			}
			return res, err
		})
		if run.Attempt == 1 {
			refused <- err
		}
		return err
	}))
	pgtest.Force(t, pool, "job:payout", <-begun, "the test takes it away")
	if err := <-refused; !errors.Is(err, fence.ErrStale) && !errors.Is(err, fence.ErrNotHeld) || !strings.Contains(err.Error(), "is not recorded") {
		t.Errorf("the old holder recorded its outcome: %v", err)
	}
	until(t, pool, 1, completeSQL, "payout")
	if calls := r.keys(); len(calls) != 2 || calls[0] != calls[1] {
		t.Errorf("called with %q, want the same key twice", calls)
	}
	if e := open(t, pool, jobs.EffectDone); e.Sends != 2 || e.Try != 1 {
		t.Errorf("recorded %+v, want 2 sends of 1 try", e)
	}
}

func TestAFailedEffectHasAKeyOfItsOwnInTheNextTry(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
		_, err := run.Effect(ctx, "acme", map[string]int{"account": run.Attempt}, func(_ context.Context, key string) (any, error) {
			res, err := r.pay(key, 100)
			if run.Attempt < 3 {
				err = fmt.Errorf("%w: account is closed", jobs.ErrFailed)
			}
			return res, err
		})
		return err
	}))
	until(t, pool, 1, completeSQL, "payout")
	base := "payout:" + keyOf(t, pool, "payout")
	want := []string{base + "/acme", base + ":try-2/acme", base + ":try-3/acme"}
	if calls := r.keys(); !slices.Equal(calls, want) {
		t.Errorf("called with %q, want %q", calls, want)
	}
	if n := count(t, pool, `select count(*) from pawl.effects where state = 'failed' and error like '%account is closed%' and ended_at is not null`); n != 2 {
		t.Errorf("%d failures on record, want 2", n)
	}
}

func TestARerunPaysOnlyWhatWasNotPaidUnlessItRepeatsTheEffects(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
		for i := range 4 {
			if run.Revision == 1 && i == 2 {
				return nil // complete, with half of it
			}
			key := fmt.Sprint("m", i)
			if _, err := run.Effect(ctx, key, i, func(_ context.Context, key string) (any, error) { return r.pay(key, i) }); err != nil {
				return err
			}
		}
		return nil
	}))
	until(t, pool, 1, completeSQL, "payout")
	period := keyOf(t, pool, "payout")
	rerun := func(repeat bool) {
		c := jobs.RerunConfig{Actor: "ann", Reason: "the other half", RepeatEffects: repeat}
		if _, err := jobs.Rerun(t.Context(), pool, "payout", period, c); err != nil {
			t.Fatal(err)
		}
	}
	rerun(false)
	until(t, pool, 2, completeSQL, "payout")
	if calls := r.keys(); len(calls) != 4 || calls[2] != "payout:"+period+"/m2" || calls[3] != "payout:"+period+"/m3" {
		t.Fatalf("a rerun called with %q, want only what wasn't paid, with the keys of the first time", calls[2:])
	}
	sends, err := jobs.RerunEffects(t.Context(), pool, "payout", period)
	if err != nil || len(sends) != 4 || sends[0].Key != "payout:"+period+":rev-3/m0" || sends[0].Request != "0" {
		t.Errorf("listed %+v, %v", sends, err)
	}
	rerun(true)
	until(t, pool, 3, completeSQL, "payout")
	if calls := r.keys(); len(calls) != 8 || calls[4] != sends[0].Key || calls[7] != sends[3].Key {
		t.Errorf("a rerun that repeats called with %q, want what was listed: %v", calls[4:], sends)
	}
}

func TestAChangedRequestUnderAnOldKeyIsRefused(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
		_, err := run.Effect(ctx, "acme", run.Attempt, func(_ context.Context, key string) (any, error) {
			_, _ = r.pay(key, 100)
			return nil, errors.New("reply lost")
		})
		return err
	}))
	until(t, pool, 1, deadSQL, "payout")
	if calls := r.keys(); len(calls) != 1 {
		t.Errorf("called %d times, want once", len(calls))
	}
	until(t, pool, 1, `select count(*) from pawl.runs where attempt = 2 and error like '%request has changed under an old key: it; change it back%'`)
}

func TestAnUncertainEffectWaitsForAPersonWhoDecides(t *testing.T) {
	t.Parallel()
	for decision, want := range map[string]struct {
		calls    int
		response string
	}{jobs.EffectDone: {1, `"po_7"`}, jobs.EffectFailed: {2, `"sent"`}, jobs.EffectDropped: {1, ""}} {
		t.Run(decision, func(t *testing.T) {
			t.Parallel()
			pool, r := pgtest.New(t), &receiver{}
			got := make(chan string, 10)
			start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
				res, err := run.EffectOf(ctx, jobs.EffectConfig{Key: "acme", Request: 100, OnUncertain: jobs.UncertainAsk, KeyLifetime: jobs.NoKeys, Send: func(_ context.Context, key string) (any, error) {
					_, _ = r.pay(key, 100)
					if run.Attempt == 1 {
						return nil, errors.New("409 in progress")
					}
					return "sent", nil
				}})
				if errors.Is(err, jobs.ErrDropped) {
					err = nil
				}
				got <- string(res)
				return err
			}))
			until(t, pool, 1, deadSQL, "payout")
			<-got
			period, e := keyOf(t, pool, "payout"), open(t, pool, jobs.EffectUncertain)
			if !strings.Contains(e.Error, "409 in progress") || e.Period != "dead" {
				t.Errorf("recorded %+v", e)
			}
			d := jobs.EffectDecision{State: decision}
			if decision == jobs.EffectDone {
				d.Response = json.RawMessage(`"po_7"`)
			}
			if err := jobs.DecideEffect(t.Context(), pool, e.ID, d, "ann", " "); !errors.Is(err, jobs.ErrNoReason) {
				t.Errorf("without a reason: %v", err)
			}
			if err := jobs.DecideEffect(t.Context(), pool, e.ID, d, "ann", "asked the bank"); err != nil {
				t.Fatal(err)
			}
			var state *jobs.EffectStateError
			if err := jobs.DecideEffect(t.Context(), pool, e.ID, d, "bob", "asked the bank too"); !errors.As(err, &state) {
				t.Errorf("a second decision: %v", err)
			}
			if n := count(t, pool, `select count(*) from pawl.audit where action = 'effect_decide' and actor = 'ann' and reason = 'asked the bank' and period = $1`, period); n != 1 {
				t.Errorf("%d lines in the audit", n)
			}
			if err := jobs.Retry(t.Context(), pool, "payout", period, "ann"); err != nil {
				t.Fatal(err)
			}
			until(t, pool, 1, completeSQL, "payout")
			if res := <-got; res != want.response || len(r.keys()) != want.calls {
				t.Errorf("response %s after %d calls, want %s after %d", res, len(r.keys()), want.response, want.calls)
			}
		})
	}
}
