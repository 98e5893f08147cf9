package lockrepo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"
)

func TestRenewalsGoOnAfterTheParentHasEndedUntilStop(t *testing.T) {
	b := &base{}
	bubble(t, b, func(t *testing.T, k *keeper) {
		parent, cancel := context.WithCancelCause(t.Context())
		ctx, kept := k.keep(parent, leaseFor("a", 30*time.Second))
		shutdown := errors.New("shutdown")
		cancel(shutdown)
		after(5 * time.Minute)
		if !errors.Is(context.Cause(ctx), shutdown) || kept.Check() != nil {
			t.Errorf("cause %v, Check %v", context.Cause(ctx), kept.Check())
		}
		if n := b.asked(); n != 30 {
			t.Errorf("%d renewals in five minutes, want 30", n)
		}
		kept.Stop()
		kept.Stop()
		after(5 * time.Minute)
		if n := b.asked(); n != 30 {
			t.Errorf("renewed %d times after Stop", n-30)
		}
	})
}

func TestRevokeStopsRenewalsAndEndsTheContext(t *testing.T) {
	b := &base{}
	bubble(t, b, func(t *testing.T, k *keeper) {
		ctx, kept := k.keep(t.Context(), leaseFor("a", 30*time.Second))
		defer kept.Stop()
		kept.Revoke(ErrGraceOver)
		after(time.Minute)
		if b.asked() != 0 || context.Cause(ctx) != ErrGraceOver || kept.Check() != ErrGraceOver { //nolint:errorlint // the very error
			t.Errorf("asked %d times, cause %v, Check %v", b.asked(), context.Cause(ctx), kept.Check())
		}
	})
}

func TestGraceIsHowLongHoldRenewsAfterItsContextHasEnded(t *testing.T) {
	b := &base{}
	bubble(t, b, func(t *testing.T, k *keeper) {
		r := &Repo{cfg: Config{Grace: 25 * time.Second}, keeper: k}
		parent, cancel := context.WithCancel(t.Context())
		_, kept := k.keep(context.WithoutCancel(parent), leaseFor("a", 30*time.Second))
		defer kept.Stop()
		defer r.graceAfter(parent, kept)()
		after(time.Minute)
		cancel()
		after(24 * time.Second)
		if err := kept.Check(); err != nil {
			t.Errorf("within the grace: %v", err)
		}
		after(2 * time.Second)
		if err := kept.Check(); !errors.Is(err, ErrGraceOver) {
			t.Errorf("after the grace: %v", err)
		}
	})
}

func TestALeaseThatIsOverIsNotKept(t *testing.T) {
	bubble(t, &base{}, func(t *testing.T, k *keeper) {
		l := leaseFor("a", time.Second)
		after(time.Second)
		ctx, kept := k.keep(t.Context(), l)
		defer kept.Stop()
		wantLoss(t, ctx, ErrExpired)
	})
}

func TestCloseEndsWhatIsStillKept(t *testing.T) {
	bubble(t, &base{}, func(t *testing.T, k *keeper) {
		ctx, _ := k.keep(t.Context(), leaseFor("a", time.Second))
		k.close()
		late, _ := k.keep(t.Context(), leaseFor("b", time.Second))
		for _, ctx := range []context.Context{ctx, late} {
			if !errors.Is(context.Cause(ctx), ErrClosed) {
				t.Errorf("cause %v, want ErrClosed", context.Cause(ctx))
			}
		}
	})
}

func TestTenThousandLeasesAreKeptByThreeGoroutines(t *testing.T) {
	b := &base{}
	bubble(t, b, func(t *testing.T, k *keeper) {
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		before := runtime.NumGoroutine()
		all := make([]*Kept, 10_000)
		for i := range all {
			_, all[i] = k.keep(parent, leaseFor(fmt.Sprint(i), 30*time.Second))
		}
		if n := runtime.NumGoroutine() - before; n > 10 {
			t.Errorf("%d goroutines for 10,000 leases", n)
		}
		after(5 * time.Minute)
		for _, kept := range all {
			if err := kept.Check(); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range b.batches {
			if n > maxBeat {
				t.Fatalf("%d leases in one statement", n)
			}
		}
		if n := b.asked(); n != 300 {
			t.Errorf("%d statements in 30 beats, want 300", n)
		}
	})
}

func TestKeepAndStopMayRaceWithAnswers(t *testing.T) {
	b := &base{batch: func(context.Context, int, []Lease) ([]verdict, error) {
		<-time.After(3 * time.Millisecond)
		return nil, nil
	}}
	bubble(t, b, func(t *testing.T, k *keeper) {
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				for j := range 100 {
					ctx, kept := k.keep(t.Context(), leaseFor(fmt.Sprint(i), 150*time.Millisecond))
					<-time.After(time.Duration(j) * time.Millisecond)
					if ctx.Err() != nil {
						t.Errorf("lost: %v", context.Cause(ctx))
					}
					kept.Completing()
					kept.Stop()
				}
			})
		}
		wg.Wait()
		if len(k.all) != 0 {
			t.Errorf("%d leases are left", len(k.all))
		}
	})
}

func BenchmarkKeepStop(b *testing.B) {
	m, err := newMetrics(nil)
	if err != nil {
		b.Fatal(err)
	}
	k := newKeeper((&base{}).heartbeat(), m, slog.New(slog.DiscardHandler))
	defer k.close()
	for range 10_000 {
		k.keep(b.Context(), leaseFor("others", 30*time.Second))
	}
	b.ReportAllocs()
	for b.Loop() {
		_, kept := k.keep(b.Context(), leaseFor("a", 30*time.Second))
		kept.Completing()
		kept.Stop()
	}
}
