package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

// tells demands that what is told of a period has sentences that match, in this order; one that begins with ! matches none.
func tells(t *testing.T, pool *pgxpool.Pool, job, key string, want ...string) {
	t.Helper()
	w, err := jobs.NewHistory(pool).Why(t.Context(), job, key)
	if err != nil {
		t.Fatal(err)
	}
	all, at := strings.Join(w.Sentences, "\n"), 0
	for _, x := range want {
		if no, ok := strings.CutPrefix(x, "!"); ok {
			if regexp.MustCompile(`(?m)` + no).MatchString(all) {
				t.Errorf("%s %s: %q is told in:\n%s", job, key, no, all)
			}
			continue
		}
		for ; at < len(w.Sentences) && !regexp.MustCompile(x).MatchString(w.Sentences[at]); at++ {
		}
		if at == len(w.Sentences) {
			t.Fatalf("%s %s: no %q, or not in this order:\n%s", job, key, x, all)
		}
		at++
	}
}

func TestWhyTellsTheShardsOfAPeriod(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	broken := true
	job := once("crunch", func(_ context.Context, run *jobs.Run) error {
		if run.Shard.Key == "2" && broken {
			return errors.New("disk is full\nat line 7")
		}
		return nil
	})
	job.Shards, job.MaxRetries = 4, 1
	_, _, stop := start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, `select count(*) from pawl.periods where job = $1 and parent is null and state = 'dead'`, "crunch")
	key := keyOf(t, pool, "crunch")
	key, _, _ = strings.Cut(key, "#")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	q := regexp.QuoteMeta(key)
	tells(t, pool, "crunch", key,
		`^crunch `+q+` was scheduled for `, `^A run began at \S+ on \S+ with token \S+ and listed 4 shards after `,
		`^Run 1 of shard 2 began at .* and failed after .*: disk is full\.$`, `^Run 2 of shard 2 began at .*: disk is full\.$`,
		`^3 of 4 shards are complete, 1 dead\.$`, `^Shard 2 is dead after 2 of 2 runs: disk is full\.$`,
		`^It is dead, since shards of it are: .* To owe it again: pawl job retry crunch `+q+`; it opens the shards`,
		`!completed the period`, `!0 of`, `!line 7`)
	tells(t, pool, "crunch", key+"#2",
		`^crunch `+q+`#2 is a shard of crunch `+q+`, number 2 from 0: `, `^Run 2 began at .* and failed after `,
		`^It is dead after 2 of 2 runs: .* pawl job retry crunch `+q+`, of the period: its shards follow$`, `!retry crunch \S+#`)
	_, err := jobs.NewHistory(pool).Why(t.Context(), "crunch", key+"#9")
	if !errors.Is(err, jobs.ErrUnknownPeriod) || !strings.Contains(err.Error(), `no shard "9"`) {
		t.Errorf("a shard that isn't there: %v", err)
	}

	if err := jobs.RetryAs(t.Context(), pool, "crunch", key, jobs.By{Actor: "ann", Reason: "there is room again"}); err != nil {
		t.Fatal(err)
	}
	broken = false
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, `select count(*) from pawl.periods where job = $1 and parent is null and state = 'complete'`, "crunch")
	tells(t, pool, "crunch", key,
		` listed 4 shards after `, `^Run 2 of shard 2 `, `^At \S+ ann owed it again, with all its retries: there is room again\.$`,
		`^A run began at .* and opened the shards again that were not complete after `,
		`^Run 1 began at .* and completed the period, all shards being complete, after `, `^4 of 4 shards are complete\.$`, `^It is complete since `)
}

func TestWhyTellsADeadShardWhileItsPeriodGoesOn(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	job := once("crunch", func(ctx context.Context, run *jobs.Run) error {
		if run.Shard.Key == "0" {
			return fmt.Errorf("%w: a bad row", jobs.ErrNoRetry)
		}
		select {
		case <-ctx.Done():
		case <-run.Draining():
		}
		return nil
	})
	job.Shards = 2
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, `select count(*) from pawl.periods where job = $1 and shard = '0' and state = 'dead'
	  and exists (select from pawl.periods where shard = '1' and state = 'running')`, "crunch")
	key, _, _ := strings.Cut(keyOf(t, pool, "crunch"), "#")
	tells(t, pool, "crunch", key, `^0 of 2 shards are complete, 1 running, 1 dead\.$`, `^Shard 0 is dead after 1 of 6 runs: .*a bad row\.$`, `^It is running\.$`)
	tells(t, pool, "crunch", key+"#0", `To owe it again: when the other shards have ended, and its period is dead, with pawl job retry crunch \S+$`)
}

func TestWhySendsAPersonToTheUncertainEffectFirst(t *testing.T) {
	t.Parallel()
	pool, r := pgtest.New(t), &receiver{}
	start(t, jobs.Config{Pool: pool}, once("payout", func(ctx context.Context, run *jobs.Run) error {
		for _, m := range []string{"acme", "bolt"} {
			_, err := run.EffectOf(ctx, jobs.EffectConfig{Key: m, Request: 1, KeyLifetime: jobs.NoKeys, Send: func(_ context.Context, key string) (any, error) {
				if m == "acme" {
					return r.pay(key, 1)
				}
				return nil, errors.New("reply lost")
			}})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	until(t, pool, 1, deadSQL, "payout")
	key, id := keyOf(t, pool, "payout"), open(t, pool, jobs.EffectOpen).ID
	q := regexp.QuoteMeta(key)
	decide := fmt.Sprintf(`^Effect %d \(bolt, idempotency key payout:%s/bolt\) is uncertain \(reply lost\): it waits for a decision\. .* pawl effects decide %d done\|failed\|dropped --reason TEXT$`, id, q, id)
	tells(t, pool, "payout", key, `^Run 1 `, `^It is dead after 1 of 6 runs: nothing runs it again by itself\.$`, decide, `^To owe it again then: pawl job retry payout `+q+`$`)

	// A person who retries first gets nowhere, and is told so once more. What they do comes where it belongs.
	if err := jobs.Retry(t.Context(), pool, "payout", key, "ann"); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 1, deadSQL+` and attempts = 2`, "payout")
	tells(t, pool, "payout", key, `^Run 1 `, `^At \S+ ann owed it again`, `^Run 2 `, decide)

	if err := jobs.DecideEffect(t.Context(), pool, id, jobs.EffectDecision{State: jobs.EffectDropped}, "ito", "not owed at all."); err != nil {
		t.Fatal(err)
	}
	tells(t, pool, "payout", key, `^Run 2 `, fmt.Sprintf(`^At \S+ ito decided that effect %d \(bolt\) is dropped: not owed at all\.$`, id),
		fmt.Sprintf(`^Effect %d \(bolt\) was given up by a person: .* pawl job cancel payout %s --reason TEXT$`, id, q), `!waits for a decision`)

	// A run that needs what was dropped isn't tried again.
	if err := jobs.Retry(t.Context(), pool, "payout", key, "ann"); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 1, deadSQL+` and attempts = 3`, "payout")
	if n := count(t, pool, `select count(*) from pawl.periods where max_attempts > attempts and reason = 'failed'`); n != 1 {
		t.Error("the period is dead for another reason than that its run is not to be tried again")
	}
}

func TestWhyTellsWhatWillFindOutOfAnEffect(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	job := once("payout", func(ctx context.Context, run *jobs.Run) error {
		_, err := run.Effect(ctx, "acme", 1, func(context.Context, string) (any, error) { return nil, errors.New("time-out") })
		return err
	})
	job.MaxRetries = 1
	job.RetryDelay, job.RetryMaxDelay = time.Hour, time.Hour
	start(t, jobs.Config{Pool: pool}, job)
	until(t, pool, 1, `select count(*) from pawl.periods where job = $1 and state = 'open' and attempts = 1`, "payout")
	key := keyOf(t, pool, "payout")
	tells(t, pool, "payout", key, `^Effect 1 \(acme, .*\) is uncertain \(time-out\): the next run finds out or sends it again, .* pawl effects decide 1 `, `^It waits until `)
	if err := jobs.Cancel(t.Context(), pool, "payout", key, "ann", "by hand"); err != nil {
		t.Fatal(err)
	}
	tells(t, pool, "payout", key, `ann cancelled it: by hand\.$`, `^Effect 1 \(acme, .*, and no run comes that finds out: .* pawl effects decide 1 `, `^It is cancelled`)
}

func TestWhyTellsOfAMessageWhatItIs(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	start(t, jobs.Config{Pool: pool}, mail(func(context.Context, *jobs.Run, jobs.Dispatch) error { return jobs.ErrNoRetry }))
	until(t, pool, 1, `select count(*) from pawl.schedules where job = $1`, "mail")
	enqueue(t, pool, "customer 42", 1)
	until(t, pool, 1, deadSQL, "mail")
	key := keyOf(t, pool, "mail")
	tells(t, pool, "mail", key, `^mail `+key+` is a message, which was enqueued at `,
		`To owe it again: pawl job retry mail `+key+`; or drop it: pawl job cancel mail `+key+` --reason TEXT; until then it holds those behind it`)
	tells(t, pool, "mail", "01ARZ3NDEKTSV4RRFFQ69G5FAV", `is an outbox: it owes only what is enqueued`)
}
