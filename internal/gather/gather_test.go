package gather_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pawl/internal/gather"
)

// held is an exec that says what it got, and answers when it is let.
type held struct{ got, open chan []string }

func (h held) exec(_ context.Context, qs []string) ([]string, error) {
	h.got <- qs
	<-h.open
	if slices.Contains(qs, "poison") {
		return nil, &pgconn.PgError{Code: "22021", SeverityUnlocalized: "ERROR"}
	}
	return qs, nil
}

func ask(ctx context.Context, g *gather.Gatherer[string, string], q string) chan error {
	out := make(chan error, 1)
	go func() {
		got, err := g.Do(ctx, q)
		if err == nil && got != q {
			err = errors.New("answer of another: " + got)
		}
		out <- err
	}()
	return out
}

func bubble(t *testing.T, executors int, test func(t *testing.T, h held, g *gather.Gatherer[string, string])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		h := held{make(chan []string, 100), make(chan []string)}
		g := gather.New(executors, 100, h.exec)
		test(t, h, g)
		g.Close()
	})
}

func TestRequestsGatherWhileACallIsOnItsWay(t *testing.T) {
	t.Parallel()
	bubble(t, 1, func(t *testing.T, h held, g *gather.Gatherer[string, string]) {
		t.Helper()
		first := ask(t.Context(), g, "1")
		if got := <-h.got; len(got) != 1 {
			t.Fatalf("a lone request went as %v", got)
		}
		second, third := ask(t.Context(), g, "2"), ask(t.Context(), g, "3")
		synctest.Wait()
		close(h.open)
		if got := <-h.got; len(got) != 2 {
			t.Errorf("behind it went %v, want both", got)
		}
		if err := errors.Join(<-first, <-second, <-third); err != nil {
			t.Error(err)
		}
	})
}

func TestARequestThatTheServerRefusesDoesNotPoisonItsCall(t *testing.T) {
	t.Parallel()
	bubble(t, 1, func(t *testing.T, h held, g *gather.Gatherer[string, string]) {
		t.Helper()
		ctx := t.Context()
		first := ask(ctx, g, "1")
		<-h.got
		a, poison, b := ask(ctx, g, "a"), ask(ctx, g, "poison"), ask(ctx, g, "b")
		synctest.Wait()
		close(h.open)
		if err := errors.Join(<-first, <-a, <-b); err != nil {
			t.Error(err)
		}
		if err := <-poison; !gather.Refused(err) {
			t.Errorf("poison = %v", err)
		}
	})
}

// What holds up one call, a row that somebody keeps, doesn't hold up those who come after it.
func TestACallThatTakesLongIsPassed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := make(chan struct{})
		g := gather.New(2, 100, func(_ context.Context, qs []string) ([]string, error) {
			if slices.Contains(qs, "slow") {
				<-kept
			}
			return qs, nil
		})
		slow := ask(t.Context(), g, "slow")
		synctest.Wait()
		since := time.Now()
		for range 3 {
			if err := <-ask(t.Context(), g, "next"); err != nil {
				t.Error(err)
			}
		}
		if d := time.Since(since); d > 100*time.Millisecond {
			t.Errorf("three requests passed a slow one in %v", d)
		}
		close(kept)
		if err := <-slow; err != nil {
			t.Error(err)
		}
		g.Close()
	})
}

func TestManyThatWaitGetACallOfTheirOwn(t *testing.T) {
	t.Parallel()
	bubble(t, 2, func(t *testing.T, h held, g *gather.Gatherer[string, string]) {
		t.Helper()
		var all []chan error
		all = append(all, ask(t.Context(), g, "first"))
		synctest.Wait()
		since := time.Now()
		for range 30 {
			all = append(all, ask(t.Context(), g, "many"))
		}
		synctest.Wait()
		if n := len(h.got); n < 2 || time.Since(since) > 0 {
			t.Errorf("%d calls on their way with 30 requests waiting", n)
		}
		close(h.open)
		for _, c := range all {
			if err := <-c; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestWhoeverGivesUpIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	bubble(t, 1, func(t *testing.T, h held, g *gather.Gatherer[string, string]) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		first := ask(t.Context(), g, "1")
		<-h.got
		second := ask(ctx, g, "2")
		synctest.Wait()
		cancel()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		close(h.open)
		if err := <-first; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(h.got) > 0 {
			t.Errorf("%v was executed though nobody waits for it", <-h.got)
		}
	})
}

func TestARequestAfterTheEndIsAnError(t *testing.T) {
	t.Parallel()
	g := gather.New(1, 1, func(_ context.Context, qs []int) ([]int, error) { return qs, nil })
	g.Close()
	g.Close()
	if _, err := g.Do(t.Context(), 1); !errors.Is(err, gather.ErrClosed) {
		t.Errorf("Do = %v", err)
	}
}
