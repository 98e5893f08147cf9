package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

var errNoReply = errors.New("no reply")

// sends is a config whose calls are counted.
func sends(calls *int, err error) EffectConfig {
	return EffectConfig{Key: "acme", Request: 100, Send: func(context.Context, string) (any, error) { *calls++; return *calls, err }}
}

// ages lets all effects have been intended a month ago.
func agesEffects(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	exec(t, pool, `with a as (update pawl.effects set at = at - interval '30 days' returning 1) select count(*) from a`)
}

func TestWhatTakesTooLongToBeAskedForIsNotSent(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run, calls := r.keep(t, r.mustStart(t, pool)), 0
	c := sends(&calls, errNoReply)
	if _, err := run.EffectOf(t.Context(), c); !errors.Is(err, errNoReply) {
		t.Fatal(err)
	}
	c.Probe = func(ctx context.Context, _ string) (any, error) {
		<-ctx.Done() // its answer comes when the receiver may have forgotten the key
		return nil, ErrAbsent
	}
	c.KeyLifetime = time.Duration(exec(t, pool, `select (extract(epoch from clock_timestamp() - at) * 1e6)::bigint from pawl.effects`))*time.Microsecond + 300*time.Millisecond
	if _, err := run.EffectOf(t.Context(), c); !errors.Is(err, ErrExpired) {
		t.Errorf("EffectOf = %v, want ErrExpired", err)
	}
	if calls != 1 {
		t.Errorf("sent %d times, want once", calls)
	}
}

// Another shard, whose lock's tokens are larger, was at it last.
func TestAnOutcomeIsRecordedWhateverTokensOtherShardsHave(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run, calls := r.keep(t, r.mustStart(t, pool)), 0
	if _, err := run.EffectOf(t.Context(), sends(&calls, errNoReply)); !errors.Is(err, errNoReply) {
		t.Fatal(err)
	}
	exec(t, pool, `with a as (update pawl.effects set token = token + 1000000000000 returning 1) select count(*) from a`)
	agesEffects(t, pool)
	c := sends(&calls, nil)
	c.Probe = func(context.Context, string) (any, error) { return "po_1", nil }
	if response, err := run.EffectOf(t.Context(), c); err != nil || string(response) != `"po_1"` || calls != 1 {
		t.Errorf("EffectOf = %s, %v after %d calls", response, err, calls)
	}
	if n := exec(t, pool, `select count(*) from pawl.effects where state = 'done' and token = $1`, run.token.Seq); n != 1 {
		t.Error("the outcome isn't recorded under the run's token")
	}
}

// Postgres' jsonb takes no NUL, no half of a pair and no number beyond numeric; the receiver may have answered one.
func TestAnyJSONMayBeDecidedAsTheResponse(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	run, calls := r.keep(t, r.mustStart(t, pool)), 0
	for _, response := range []string{`"a\u0000b"`, `"\ud800"`, `1e999999`, `{"a":1,"a":2}`} {
		c := sends(&calls, errNoReply)
		c.Key = "k" + string(rune('a'+calls))
		if _, err := run.EffectOf(t.Context(), c); err == nil {
			t.Fatal("no error")
		}
		r.mustEndAs(t, run, stateFailed)
		id := exec(t, pool, `select max(id) from pawl.effects`)
		err := DecideEffect(t.Context(), pool, id, EffectDecision{State: EffectDone, Response: json.RawMessage(response)}, "ann", "asked the bank")
		if err != nil {
			t.Fatalf("%s: %v", response, err)
		}
		run = r.keep(t, r.mustStart(t, pool))
		if got, err := run.EffectOf(t.Context(), c); err != nil || string(got) != response {
			t.Errorf("then %s, %v, want %s", got, err, response)
		}
	}
	if list, err := NewHistory(pool).Effects(t.Context(), EffectFilter{}); err != nil || len(list) != 4 {
		t.Errorf("%d effects are listed, %v", len(list), err)
	}
	var bad *ConfigError
	long := json.RawMessage(`"` + strings.Repeat("x", mostRequest) + `"`)
	if err := DecideEffect(t.Context(), pool, 1, EffectDecision{State: EffectDone, Response: long}, "ann", "why"); !errors.As(err, &bad) {
		t.Errorf("a response of %d bytes: %v", len(long), err)
	}
}

// mustEndAs ends a run so that its period may run again at once.
func (r *Runner) mustEndAs(t *testing.T, run *Run, outcome string) {
	t.Helper()
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: outcome}}); err != nil || !ok[0] {
		t.Fatal(ok, err)
	}
}

// What a shard sends is another thing than what the next one sends: a receiver would take it for the same, and do nothing.
func TestEachShardSendsUnderAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	key := r.chain(t, 1, Job{ShardKeys: func(context.Context, *Run) ([]string, error) { return nil, nil }})[0]
	r.fan(t, "a", "a:try-2")
	var got []string
	note := func(lock string) *Run {
		t.Helper()
		run := r.beginOn(t, lock)
		k, err := run.EffectKey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, k)
		return run
	}
	a := note("L#a")
	note("L#a:try-2")
	if err := a.SpendKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.mustEndAs(t, a, stateFailed)
	note("L#a")
	want := []string{"j:" + key + "#a", "j:" + key + "#a:try-2", "j:" + key + ":try-2#a"}
	if !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where refused > 0`); n != 1 {
		t.Errorf("%d rows have another key now, want that of the shard", n)
	}
}

// A holder stands still just before its call. By then a person has said that it has not happened, and the next run has done it
// under a key of its own: no receiver can tell that the two are one.
func TestWhoSaysFailedWhileAHolderStandsStillLetsItBeDoneTwiceAndTheReconciliationSaysSo(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	owes(t, pool, "1")
	old := r.keep(t, r.mustStart(t, pool))
	var paid []string
	pays := func(ctx context.Context, key string) (any, error) { paid = append(paid, key); return key, ctx.Err() }
	c := EffectConfig{Key: "acme", Request: 100, OnUncertain: UncertainAsk, Send: func(ctx context.Context, key string) (any, error) {
		exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = 'L' returning 1`)
		if _, err := r.sweep(ctx); err != nil {
			t.Fatal(err)
		}
		if err := DecideEffect(ctx, pool, 1, EffectDecision{State: EffectFailed}, "ann", "the bank has nothing"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.keep(t, r.mustStart(t, pool)).Effect(ctx, "acme", 100, pays); err != nil {
			t.Fatal(err)
		}
		return pays(ctx, key)
	}}
	if _, err := old.EffectOf(t.Context(), c); err == nil {
		t.Error("the old holder has recorded its outcome")
	}
	if !slices.Equal(paid, []string{"j:1:try-2/acme", "j:1/acme"}) {
		t.Fatalf("paid %q", paid)
	}
	f := Reconciliation{Of: "j"}.judge(time.Now(), map[string]EffectInfo{"j:1/acme": {State: EffectFailed}}, []Receipt{{IdempotencyKey: "j:1/acme"}})
	if !slices.Equal(f.kinds, []string{"stray"}) {
		t.Errorf("the reconciliation finds %q", f.kinds)
	}
}
