package lockrepo

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// shift moves a keeper's clocks.
type shift struct {
	mu         sync.Mutex
	wall, boot time.Duration
}

func (s *shift) install(k *keeper) {
	k.clock = func() Instant {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := Now()
		i.clock, i.boot = i.clock.Add(s.wall), i.boot+s.boot
		return i
	}
}

func (s *shift) move(wall, boot time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wall, s.boot = s.wall+wall, s.boot+boot
}

func TestASleepOfTheMachineEndsTheLeaseAtTheFirstLook(t *testing.T) {
	bubble(t, &base{}, func(t *testing.T, k *keeper) {
		var s shift
		s.install(k)
		ctx, kept := k.keep(t.Context(), leaseFor("a", 30*time.Second))
		defer kept.Stop()
		s.move(time.Minute, time.Minute)
		if err := kept.Check(); !errors.Is(err, ErrExpired) {
			t.Errorf("Check after a sleep = %v, want ErrExpired", err)
		}
		wantLoss(t, ctx, ErrExpired)
		ctx2, kept2 := k.keep(t.Context(), Lease{TTL: 30 * time.Second, sent: k.clock(), margin: 3 * time.Second})
		defer kept2.Stop()
		s.move(time.Minute, time.Minute)
		after(time.Second) // nobody checks: the watchdog does
		wantLoss(t, ctx2, ErrExpired)
	})
}

func TestAWallClockThatLeapsIsSuspectedUntilARenewalIsAnswered(t *testing.T) {
	b := &base{}
	bubble(t, b, func(t *testing.T, k *keeper) {
		var s shift
		s.install(k)
		ctx, kept := k.keep(t.Context(), leaseFor("a", 30*time.Second))
		defer kept.Stop()
		s.move(2*time.Second, 0) // within the margin
		if err := kept.Check(); err != nil {
			t.Fatalf("Check within the margin = %v", err)
		}
		s.move(time.Hour, 0) // somebody sets the clock
		if err := kept.Check(); !errors.Is(err, ErrSuspect) {
			t.Fatalf("Check = %v, want ErrSuspect", err)
		}
		synctest.Wait()
		if b.asked() != 1 {
			t.Fatalf("%d renewals at once, want 1", b.asked())
		}
		if err := kept.Check(); err != nil {
			t.Errorf("Check after an answer = %v", err)
		}
		after(time.Minute)
		wantAlive(t, ctx)
	})
}

func TestASuspectedLeaseWithoutAnAnswerEndsWithinTheMargin(t *testing.T) {
	b := &base{batch: func(context.Context, int, []Lease) ([]verdict, error) { return nil, errAway }}
	bubble(t, b, func(t *testing.T, k *keeper) {
		var s shift
		s.install(k)
		ctx, kept := k.keep(t.Context(), leaseFor("a", 30*time.Second))
		defer kept.Stop()
		s.move(time.Hour, 0)
		after(time.Second) // the watchdog sees it
		if err := kept.Check(); !errors.Is(err, ErrSuspect) {
			t.Fatalf("Check = %v, want ErrSuspect", err)
		}
		after(4 * time.Second)
		wantLoss(t, ctx, ErrExpired)
	})
}

func TestADatabaseClockThatRunsAheadIsSuspected(t *testing.T) {
	b := &base{}
	bubble(t, b, func(t *testing.T, k *keeper) {
		ctx, kept := k.keep(t.Context(), leaseFor("a", 30*time.Second))
		defer kept.Stop()
		after(15 * time.Second) // one beat
		b.batch = func(_ context.Context, n int, _ []Lease) ([]verdict, error) {
			if n == 3 {
				<-time.After(time.Second)
			}
			return nil, nil
		}
		b.mu.Lock()
		b.skew = 20 * time.Second // we have stood still for 20 s
		b.mu.Unlock()
		after(5 * time.Second) // the second beat
		if err := kept.Check(); !errors.Is(err, ErrSuspect) {
			t.Errorf("Check = %v, want ErrSuspect", err)
		}
		after(time.Second)
		if n, err := b.asked(), kept.Check(); n != 3 || err != nil {
			t.Errorf("%d beats, Check = %v: want a third at once, then nil", n, err)
		}
		after(time.Minute)
		wantAlive(t, ctx)
	})
}

func TestSureWaitsForTheAnswerThatASuspicionAsksFor(t *testing.T) {
	b := &base{}
	bubble(t, b, func(t *testing.T, k *keeper) {
		var s shift
		s.install(k)
		_, kept := k.keep(t.Context(), leaseFor("a", 30*time.Second))
		defer kept.Stop()
		s.move(time.Hour, 0)
		if err := kept.Sure(t.Context()); err != nil {
			t.Errorf("Sure = %v, want nil once the renewal is answered", err)
		}
		if n := b.asked(); n != 1 {
			t.Errorf("%d renewals, want 1", n)
		}
		s.move(-2*time.Hour, 0)
		if err := kept.Sure(t.Context()); err != nil {
			t.Errorf("Sure after a leap back = %v", err)
		}
	})
}

func TestSureWithoutAnAnswerEndsWithTheLossOrItsContext(t *testing.T) {
	b := &base{batch: func(context.Context, int, []Lease) ([]verdict, error) { return nil, errAway }}
	bubble(t, b, func(t *testing.T, k *keeper) {
		var s shift
		s.install(k)
		_, kept := k.keep(t.Context(), leaseFor("a", 30*time.Second))
		defer kept.Stop()
		s.move(time.Hour, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := kept.Sure(ctx); !errors.Is(err, ErrSuspect) {
			t.Errorf("Sure = %v when its context ends, want ErrSuspect", err)
		}
		begun := time.Now()
		if err := kept.Sure(t.Context()); !errors.Is(err, ErrExpired) || time.Since(begun) > 3*time.Second {
			t.Errorf("Sure = %v after %s, want ErrExpired within the margin", err, time.Since(begun))
		}
		_, stopped := k.keep(t.Context(), Lease{TTL: 30 * time.Second, sent: k.clock(), margin: 3 * time.Second})
		s.move(time.Hour, 0)
		sure := make(chan error)
		go func() { sure <- stopped.Sure(t.Context()) }()
		synctest.Wait()
		stopped.Stop()
		if err := <-sure; !errors.Is(err, ErrSuspect) {
			t.Errorf("Sure of a lease that is let go = %v, want ErrSuspect", err)
		}
	})
}
