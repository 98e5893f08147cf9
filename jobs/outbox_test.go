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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

// inbox is a receiver that notes what it gets.
type inbox struct {
	mu  sync.Mutex
	got []jobs.Dispatch
}

func (i *inbox) take(_ context.Context, _ *jobs.Run, d jobs.Dispatch) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.got = append(i.got, d)
	return nil
}

// bodies are those of a key, in the order in which they came.
func (i *inbox) bodies(key string) (all []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, d := range i.got {
		if d.Key == key {
			all = append(all, string(d.Body))
		}
	}
	return all
}

// mail is an outbox that tries at once.
func mail(send func(context.Context, *jobs.Run, jobs.Dispatch) error) jobs.Job {
	return jobs.Outbox(jobs.Job{Name: "mail", MaxRetries: 2, RetryDelay: time.Millisecond, RetryMaxDelay: time.Millisecond}, send)
}

func enqueue(t *testing.T, pool *pgxpool.Pool, key string, body any) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := jobs.Enqueue(t.Context(), tx, jobs.Message{Outbox: "mail", Key: key, Body: body})
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// registered waits until the outbox is stored.
func registered(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	until(t, pool, 1, `select count(*) from pawl.schedules where job = 'mail'`)
}

func TestMessagesOfAKeyComeInTheOrderOfTheirCommits(t *testing.T) {
	t.Parallel()
	pool, in := pgtest.New(t), &inbox{}
	for range 2 {
		start(t, jobs.Config{Pool: pool, Concurrency: 4}, mail(in.take))
	}
	registered(t, pool)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 10 {
				key := fmt.Sprint("customer ", i%2)
				err := pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
					seq, err := jobs.Enqueue(context.Background(), tx, jobs.Message{Outbox: "mail", Key: key})
					if err == nil {
						_, err = tx.Exec(context.Background(), `update pawl.outbox set body = $3 where job = 'mail' and key = $1 and seq = $2`, key, seq, fmt.Sprint(seq))
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	until(t, pool, 40, completeSQL, "mail")
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprint(i+1))
	}
	for _, key := range []string{"customer 0", "customer 1"} {
		if got := in.bodies(key); !slices.Equal(got, want) {
			t.Errorf("%s got %v", key, got)
		}
	}
	keys := map[string]bool{}
	for _, d := range in.got {
		keys[d.IdempotencyKey] = true
	}
	if len(keys) != 40 {
		t.Errorf("%d idempotency keys for 40 messages", len(keys))
	}
}

func TestAMessageCommitsWithTheDataOrNotAtAll(t *testing.T) {
	t.Parallel()
	pool, in := pgtest.New(t), &inbox{}
	job := once("order", func(ctx context.Context, run *jobs.Run) error {
		undone := errors.New("rolled back")
		err := run.Tx(ctx, func(tx pgx.Tx) error {
			if _, err := run.Enqueue(ctx, tx, jobs.Message{Outbox: "mail", Key: "k", Body: "never"}); err != nil {
				return err
			}
			return undone
		})
		if !errors.Is(err, undone) {
			return err
		}
		err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			_, err := run.Enqueue(ctx, tx, jobs.Message{Outbox: "mail", Key: "k"})
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "needs the transaction that Run.Tx gave") {
			t.Errorf("in a transaction that isn't guarded: %v", err)
		}
		return run.Complete(ctx, func(tx pgx.Tx) error {
			_, err := run.Enqueue(ctx, tx, jobs.Message{Outbox: "mail", Key: "k", Body: map[string]int{"order": 7}})
			return err
		})
	})
	start(t, jobs.Config{Pool: pool}, job, mail(in.take))
	until(t, pool, 1, completeSQL, "mail")
	if got := in.bodies("k"); !slices.Equal(got, []string{`{"order":7}`}) || in.got[0].Seq != 1 {
		t.Errorf("got %v, want the one that was committed, as number 1", in.got)
	}
}

// An old holder's message is refused with its transaction.
func TestAMessageOfAnOldHolderIsNotEnqueued(t *testing.T) {
	t.Parallel()
	pool, in := pgtest.New(t), &inbox{}
	begun, forced := make(chan int64, 1), make(chan struct{})
	done := make(chan error, 1)
	job := once("order", func(ctx context.Context, run *jobs.Run) error {
		if run.Attempt > 1 {
			return nil
		}
		err := run.Tx(ctx, func(tx pgx.Tx) error {
			begun <- run.Token().Seq
			<-forced
			_, err := run.Enqueue(context.WithoutCancel(ctx), tx, jobs.Message{Outbox: "mail", Key: "k", Body: 1})
			return err
		})
		done <- err
		return err
	})
	start(t, jobs.Config{Pool: pool}, job, mail(in.take))
	pgtest.Force(t, pool, "job:order", <-begun, "the test takes it away")
	close(forced)
	if err := <-done; err == nil {
		t.Error("an old holder's transaction committed")
	}
	until(t, pool, 1, completeSQL, "order")
	if n := count(t, pool, `select count(*) from pawl.outbox`); n != 0 {
		t.Errorf("%d messages", n)
	}
}

func TestADeadMessageHoldsItsKeyAloneUntilAPersonRetriesOrDropsIt(t *testing.T) {
	t.Parallel()
	for act, do := range map[string]func(ctx context.Context, pool *pgxpool.Pool, key string) error{
		"retry": func(ctx context.Context, pool *pgxpool.Pool, key string) error {
			return jobs.Retry(ctx, pool, "mail", key, "ann")
		},
		"drop": func(ctx context.Context, pool *pgxpool.Pool, key string) error {
			return jobs.Cancel(ctx, pool, "mail", key, "ann", "the customer has left")
		},
	} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			pool, in := pgtest.New(t), &inbox{}
			var mu sync.Mutex
			down := true
			start(t, jobs.Config{Pool: pool}, mail(func(ctx context.Context, run *jobs.Run, d jobs.Dispatch) error {
				mu.Lock()
				defer mu.Unlock()
				if down && string(d.Body) == `"first"` {
					return errors.New("mailbox full")
				}
				return in.take(ctx, run, d)
			}))
			registered(t, pool)
			enqueue(t, pool, "a", "first")
			enqueue(t, pool, "a", "second")
			until(t, pool, 1, deadSQL, "mail")
			enqueue(t, pool, "a", "third")
			enqueue(t, pool, "b", "other")
			until(t, pool, 1, completeSQL, "mail")
			if got := in.bodies("a"); len(got) != 0 {
				t.Fatalf("%v came before the dead one", got)
			}
			list, err := jobs.NewHistory(pool).Messages(t.Context(), jobs.MessageFilter{Outbox: "mail", State: "dead"})
			if err != nil || len(list) != 1 || list[0].MessageKey != "a" || list[0].Seq != 1 || !strings.Contains(list[0].Error, "mailbox full") {
				t.Fatalf("listed %+v, %v", list, err)
			}
			mu.Lock()
			down = false
			mu.Unlock()
			if err := do(t.Context(), pool, list[0].Key); err != nil {
				t.Fatal(err)
			}
			want := []string{`"first"`, `"second"`, `"third"`}
			if act == "drop" {
				want = want[1:]
			}
			until(t, pool, len(want)+1, completeSQL, "mail")
			if got := in.bodies("a"); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// What died while the next one was being enqueued isn't seen by that: it is found before the message is sent.
func TestAMessageThatWasEnqueuedWhileTheOneBeforeItDiedWaitsToo(t *testing.T) {
	t.Parallel()
	pool, in := pgtest.New(t), &inbox{}
	die := make(chan struct{})
	start(t, jobs.Config{Pool: pool}, mail(func(ctx context.Context, run *jobs.Run, d jobs.Dispatch) error {
		if d.Seq == 1 && !d.Again {
			<-die
			return fmt.Errorf("%w: unknown address", jobs.ErrNoRetry)
		}
		return in.take(ctx, run, d)
	}))
	registered(t, pool)
	enqueue(t, pool, "a", 1)
	until(t, pool, 1, `select count(*) from pawl.runs where job = 'mail' and ended_at is null`)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.Enqueue(t.Context(), tx, jobs.Message{Outbox: "mail", Key: "a", Body: 2}); err != nil {
		t.Fatal(err)
	}
	close(die)
	until(t, pool, 1, deadSQL, "mail")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 1, `select count(*) from pawl.periods where job = 'mail' and state = 'open' and waits = 'dead'`)
	if got := in.bodies("a"); len(got) != 0 {
		t.Fatalf("%v came before the dead one", got)
	}
	var dead string
	if err := pool.QueryRow(t.Context(), `select key from pawl.periods where job = 'mail' and state = 'dead'`).Scan(&dead); err != nil {
		t.Fatal(err)
	}
	if err := jobs.Retry(t.Context(), pool, "mail", dead, "ann"); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 2, completeSQL, "mail")
	if got := in.bodies("a"); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("got %v", got)
	}
}

func TestAMessageForNoOutboxIsRefused(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	start(t, jobs.Config{Pool: pool}, once("order", nothing))
	until(t, pool, 1, completeSQL, "order")
	for _, m := range []jobs.Message{{Outbox: "mail", Key: "k"}, {Outbox: "order", Key: "k"}} {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { _, err := jobs.Enqueue(t.Context(), tx, m); return err })
		if !errors.Is(err, jobs.ErrUnknownJob) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	for _, m := range []jobs.Message{{Outbox: "mail"}, {Outbox: "mail", Key: strings.Repeat("k", 121)}, {Outbox: "mail", Key: "k", Body: strings.Repeat("x", 1<<17)}} {
		var bad *jobs.ConfigError
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { _, err := jobs.Enqueue(t.Context(), tx, m); return err })
		if !errors.As(err, &bad) {
			t.Errorf("key of %d bytes: %v", len(m.Key), err)
		}
	}
}

func TestARenamedOutboxGoesOnCounting(t *testing.T) {
	t.Parallel()
	pool, in := pgtest.New(t), &inbox{}
	_, _, stop := start(t, jobs.Config{Pool: pool}, mail(in.take))
	registered(t, pool)
	enqueue(t, pool, "a", 1)
	until(t, pool, 1, completeSQL, "mail")
	_ = stop()
	enqueue(t, pool, "a", 2) // nobody is there to send it
	j := mail(in.take)
	j.Name, j.RenameFrom = "letters", "mail"
	start(t, jobs.Config{Pool: pool}, j)
	until(t, pool, 2, completeSQL, "letters")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		seq, err := jobs.Enqueue(t.Context(), tx, jobs.Message{Outbox: "letters", Key: "a", Body: json.RawMessage("3")})
		if seq != 3 {
			t.Errorf("number %d, want 3", seq)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	until(t, pool, 3, completeSQL, "letters")
	if got := in.bodies("a"); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("got %v", got)
	}
}
