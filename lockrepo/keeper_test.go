package lockrepo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"pawl/fence"
)

var errAway = errors.New("database away")

// base is a database that renews everything and counts what it was asked.
type base struct {
	mu      sync.Mutex
	batches []int // leases in each statement
	singles int
	skew    time.Duration // of its clock

	// What to answer instead, if set: by call number, from 1.
	batch func(ctx context.Context, n int, ls []Lease) ([]verdict, error)
	one   func(ctx context.Context, n int, l Lease) (verdict, error)
}

func (b *base) heartbeat() heartbeat {
	return heartbeat{batch: b.sendBatch, one: b.sendOne, close: func() {}}
}

func renewed(l Lease) verdict { return verdict{expires: time.Now().Add(l.TTL)} }

func (b *base) sendBatch(ctx context.Context, ls []Lease) ([]verdict, time.Time, error) {
	b.mu.Lock()
	b.batches = append(b.batches, len(ls))
	n, skew := len(b.batches), b.skew
	b.mu.Unlock()
	if b.batch != nil {
		if out, err := b.batch(ctx, n, ls); out != nil || err != nil {
			return out, time.Now().Add(skew), err
		}
	}
	out := make([]verdict, len(ls))
	for i, l := range ls {
		out[i] = renewed(l)
	}
	return out, time.Now().Add(skew), nil
}

func (b *base) sendOne(ctx context.Context, l Lease) (verdict, time.Time, error) {
	b.mu.Lock()
	b.singles++
	n, skew := b.singles, b.skew
	b.mu.Unlock()
	v, err := b.one(ctx, n, l)
	return v, time.Now().Add(skew), err
}

func (b *base) asked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.batches)
}

// bubble runs f in fake time with a keeper on b.
func bubble(t *testing.T, b *base, f func(t *testing.T, k *keeper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, err := newMetrics(nil)
		if err != nil {
			t.Fatal(err)
		}
		k := newKeeper(b.heartbeat(), m, slog.New(slog.DiscardHandler))
		defer k.close()
		f(t, k)
	})
}

func leaseFor(lock string, ttl time.Duration) Lease {
	return Lease{Token: fence.Token{Lock: lock, Seq: 1}, Grant: uuid.New(), TTL: ttl, sent: Now(), margin: ttl / 10}
}

// after lets fake time go by.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func wantAlive(t *testing.T, ctx context.Context) { //nolint:revive // t comes first in helpers
	t.Helper()
	if ctx.Err() != nil {
		t.Fatalf("context ended: %v", context.Cause(ctx))
	}
}

func wantLoss(t *testing.T, ctx context.Context, cause error) { //nolint:revive // t comes first in helpers
	t.Helper()
	got := context.Cause(ctx)
	var lost *LostError
	if !errors.Is(got, cause) || !errors.Is(got, ErrNotHeld) || !errors.As(got, &lost) {
		t.Fatalf("context ended with %v, want a LostError with %v", got, cause)
	}
}

func TestLeasesAreRenewedForAnHourInOneStatementABeat(t *testing.T) {
	b := &base{}
	bubble(t, b, func(t *testing.T, k *keeper) {
		var all []context.Context
		for i := range 100 {
			ctx, kept := k.keep(t.Context(), leaseFor(fmt.Sprint(i), 30*time.Second))
			defer kept.Stop()
			all = append(all, ctx)
		}
		after(time.Hour)
		for _, ctx := range all {
			wantAlive(t, ctx)
		}
		if n := b.asked(); n < 359 || n > 361 {
			t.Errorf("%d statements in an hour, want 360: one every TTL/3", n)
		}
		if b.batches[7] != 100 {
			t.Errorf("a statement for %d leases, want 100", b.batches[7])
		}
	})
}

func TestEachLeaseIsRenewedAtAThirdOfItsOwnTTL(t *testing.T) {
	short := 0
	b := &base{batch: func(_ context.Context, _ int, ls []Lease) ([]verdict, error) {
		for _, l := range ls {
			if l.TTL == time.Second {
				short++
			}
		}
		return nil, nil
	}}
	bubble(t, b, func(t *testing.T, k *keeper) {
		slow, h := k.keep(t.Context(), leaseFor("slow", 30*time.Second))
		defer h.Stop()
		after(5 * time.Second)
		fast, h2 := k.keep(t.Context(), leaseFor("fast", time.Second))
		after(time.Minute)
		wantAlive(t, slow)
		wantAlive(t, fast)
		h2.Stop()
		if short < 170 || short > 182 {
			t.Errorf("the short lease was renewed %d times in a minute, want about 180", short)
		}
		n := b.asked()
		after(time.Minute)
		if n = b.asked() - n; n != 6 {
			t.Errorf("%d statements a minute once the short lease has gone, want 6", n)
		}
	})
}

func TestABlipIsRiddenOut(t *testing.T) {
	b := &base{batch: func(_ context.Context, n int, _ []Lease) ([]verdict, error) {
		if n >= 2 && n <= 8 {
			return nil, errAway
		}
		return nil, nil
	}}
	bubble(t, b, func(t *testing.T, k *keeper) {
		ctx, kept := k.keep(t.Context(), leaseFor("a", 30*time.Second))
		defer kept.Stop()
		after(time.Hour)
		wantAlive(t, ctx)
	})
}

func TestACallThatHangsForALongLeaseDoesNotCostAShortOne(t *testing.T) {
	hung := false
	b := &base{batch: func(ctx context.Context, _ int, ls []Lease) ([]verdict, error) {
		if hung || ls[0].TTL == time.Second {
			return nil, nil
		}
		hung = true
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	bubble(t, b, func(t *testing.T, k *keeper) {
		long, kept := k.keep(t.Context(), leaseFor("long", 30*time.Second))
		defer kept.Stop()
		after(100 * time.Millisecond)
		short, kept := k.keep(t.Context(), leaseFor("short", time.Second))
		defer kept.Stop()
		after(time.Minute)
		if !hung {
			t.Error("nothing hung")
		}
		wantAlive(t, long)
		wantAlive(t, short)
	})
}

func TestAnUnansweredLeaseEndsBeforeItsEnd(t *testing.T) {
	for name, batch := range map[string]func(context.Context, int, []Lease) ([]verdict, error){
		"refused": func(context.Context, int, []Lease) ([]verdict, error) { return nil, errAway },
		"hangs": func(ctx context.Context, _ int, _ []Lease) ([]verdict, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &base{batch: batch}
			bubble(t, b, func(t *testing.T, k *keeper) {
				start := time.Now()
				ctx, kept := k.keep(t.Context(), leaseFor("a", 30*time.Second))
				defer kept.Stop()
				<-ctx.Done()
				wantLoss(t, ctx, ErrExpired)
				if d := time.Since(start); d < 26*time.Second || d > 27*time.Second {
					t.Errorf("ended after %v, want 27s: TTL less the margin", d)
				}
				if err := kept.Check(); !errors.Is(err, ErrExpired) {
					t.Errorf("Check = %v, want ErrExpired", err)
				}
				n := b.asked()
				if n > 20 {
					t.Errorf("asked %d times in 17 s: it spins", n)
				}
				after(time.Hour)
				if b.asked() != n {
					t.Error("a lease that has ended is still asked for")
				}
			})
		})
	}
}

func TestNotHeldEndsTheContextAtOnceWithItsCause(t *testing.T) {
	for _, cause := range []error{ErrTakenOver, ErrForced, ErrExpired} {
		b := &base{batch: func(_ context.Context, _ int, ls []Lease) ([]verdict, error) {
			return []verdict{{lost: &LostError{Token: ls[0].Token, Cause: cause, Successor: 7}}}, nil
		}}
		bubble(t, b, func(t *testing.T, k *keeper) {
			start := time.Now()
			ctx, kept := k.keep(t.Context(), leaseFor("a", 30*time.Second))
			defer kept.Stop()
			<-ctx.Done()
			wantLoss(t, ctx, cause)
			if d := time.Since(start); d != 10*time.Second {
				t.Errorf("ended after %v, want 10s", d)
			}
		})
	}
}

func TestCompletingIsNoLoss(t *testing.T) {
	b := &base{batch: func(_ context.Context, _ int, ls []Lease) ([]verdict, error) {
		<-time.After(time.Second) // the release is answered meanwhile
		return []verdict{{lost: &LostError{Token: ls[0].Token, Cause: ErrNotHeld}}}, nil
	}}
	bubble(t, b, func(t *testing.T, k *keeper) {
		ctx, kept := k.keep(t.Context(), leaseFor("a", 30*time.Second))
		after(10 * time.Second) // the beat is on its way
		kept.Completing()
		after(10 * time.Minute) // a COMMIT that takes its time
		wantAlive(t, ctx)
		if err := kept.Check(); err != nil {
			t.Errorf("Check while completing = %v", err)
		}
		kept.Stop()
		if !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("after Stop: %v", context.Cause(ctx))
		}
	})
}

func TestResumeRenewsAtOnceOrEndsTheLease(t *testing.T) {
	b := &base{}
	bubble(t, b, func(t *testing.T, k *keeper) {
		ctx, kept := k.keep(t.Context(), leaseFor("a", 30*time.Second))
		defer kept.Stop()
		kept.Completing()
		after(25 * time.Second)
		if b.asked() != 0 {
			t.Error("renewed while completing")
		}
		kept.Resume()
		synctest.Wait()
		if b.asked() != 1 {
			t.Errorf("%d renewals at once after Resume, want 1", b.asked())
		}
		after(time.Minute)
		wantAlive(t, ctx)
		kept.Completing()
		after(time.Minute)
		kept.Resume()
		synctest.Wait()
		wantLoss(t, ctx, ErrExpired)
	})
}

func TestALockedRowIsAskedForAloneAndHoldsUpNobody(t *testing.T) {
	var freed time.Time // when the rows with an "l" are let go
	b := &base{}
	b.batch = func(_ context.Context, _ int, ls []Lease) ([]verdict, error) {
		out := make([]verdict, len(ls))
		for i, l := range ls {
			if l.Token.Lock[0] != 'l' || !time.Now().Before(freed) && l.Token.Lock == "l2" {
				out[i] = renewed(l)
			}
		}
		return out, nil
	}
	b.one = func(ctx context.Context, _ int, l Lease) (verdict, error) {
		if l.Token.Lock == "l2" && !time.Now().Before(freed) {
			return renewed(l), nil
		}
		<-ctx.Done()
		return verdict{}, ctx.Err()
	}
	bubble(t, b, func(t *testing.T, k *keeper) {
		start := time.Now()
		freed = start.Add(20 * time.Second)
		free, h := k.keep(t.Context(), leaseFor("free", 30*time.Second))
		defer h.Stop()
		l1, h := k.keep(t.Context(), leaseFor("l1", 30*time.Second)) // never let go
		defer h.Stop()
		l2, h := k.keep(t.Context(), leaseFor("l2", 30*time.Second))
		defer h.Stop()
		<-l1.Done()
		wantLoss(t, l1, ErrExpired)
		if d := time.Since(start); d < 26*time.Second || d > 27*time.Second {
			t.Errorf("the locked lease ended after %v, want 27s", d)
		}
		after(time.Minute)
		wantAlive(t, free)
		wantAlive(t, l2) // though l1's row was asked for first
		if b.singles < 4 {
			t.Errorf("asked alone %d times", b.singles)
		}
	})
}
