package settlement

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/lockrepo"
)

// owed is a settlement whose last five days have payments and no settlement.
func owed(t *testing.T, payments int) (*Settlement, *pgxpool.Pool, jobs.Job) {
	t.Helper()
	pool, s := pgtest.New(t), New(Config{})
	if err := s.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	today := one[time.Time](t, pool, `select date_trunc('day', now(), 'UTC')`)
	if err := s.Generate(t.Context(), pool, Input{Payments: payments, Last: today.AddDate(0, 0, -1)}); err != nil {
		t.Fatal(err)
	}
	j := s.Job()
	j.Start = today.AddDate(0, 0, -5) // its tick is over: the next one owes the first day
	j.TTL, j.RetryDelay, j.RetryMaxDelay = 2*time.Second, time.Millisecond, 10*time.Millisecond
	return s, pool, j
}

// work runs the job until five days are complete.
func work(t *testing.T, pool *pgxpool.Pool, j jobs.Job) {
	t.Helper()
	runner, err := jobs.New(jobs.Config{Pool: pool, Grace: time.Second, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Add(j); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	pgtest.Eventually(t, time.Minute, "five days are complete", func() bool {
		return one[int](t, pool, `select count(*)::int from pawl.periods where job = 'settlement' and state = 'complete'`) >= 5
	})
}

func TestARunThatFailsInsideABatchIsResumedByTheNext(t *testing.T) {
	t.Parallel()
	s, pool, j := owed(t, 10_000)
	var batches atomic.Int64
	s.cfg.Inside = func(context.Context, int) error {
		if batches.Add(1) == 14 { // the fourth batch of the second day
			return errStop
		}
		return nil
	}
	work(t, pool, j)
	if got := totals(t, s, pool); !got.OK() || got.Payments != 10_000 {
		t.Errorf("totals %+v", got.Total)
	}
	runs := one[int](t, pool, `select count(*)::int from pawl.runs where resumed and attempt = 2`)
	tokens := one[int](t, pool, s.sql(`select count(distinct last_token)::int from $schema.settlement`))
	if runs != 1 || tokens != 6 {
		t.Errorf("%d runs resumed, %d tokens wrote; want 1, and 6 over five days", runs, tokens)
	}
}

func TestAnOldHolderIsRefusedByItsGuard(t *testing.T) {
	t.Parallel()
	s, pool, j := owed(t, 2000)
	repo, err := lockrepo.New(lockrepo.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	var forced atomic.Bool
	var refusal atomic.Value
	s.cfg.Pause = func(ctx context.Context, batch int) error {
		if batch != 3 || forced.Swap(true) {
			return nil
		}
		info, err := repo.Show(ctx, "job:settlement")
		if err != nil {
			return err
		}
		if outcome, err := pgtest.TryForce(ctx, pool, info.Lock, info.Token, "takes the day from its holder"); err != nil || outcome != "approved" {
			return errors.Join(errors.New("force: "+outcome), err)
		}
		return nil
	}
	settle := j.Func
	j.Func = func(ctx context.Context, r *jobs.Run) error {
		// A function that doesn't look at its context: what stops it is the fence.
		err := settle(context.WithoutCancel(ctx), r)
		if err != nil {
			refusal.CompareAndSwap(nil, err)
		}
		return err
	}
	work(t, pool, j)
	if err, _ := refusal.Load().(error); !errors.Is(err, fence.ErrNotHeld) && !errors.Is(err, fence.ErrStale) {
		t.Errorf("the old holder's write: %v, want a refusal", err)
	}
	if got := totals(t, s, pool); !got.OK() || got.Payments != 2000 {
		t.Errorf("totals %+v", got.Total)
	}
	if got := one[int](t, pool, `select count(*)::int from pawl.refusals where lock = 'job:settlement'`); got == 0 {
		t.Error("no refusal is recorded")
	}
}
