package lockclient

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pawl/internal/clocks"
)

// shift moves a client's clocks.
type shift struct {
	mu         sync.Mutex
	wall, boot time.Duration
}

func (s *shift) install(c *Client) {
	c.now = func() clocks.Reading {
		s.mu.Lock()
		defer s.mu.Unlock()
		r := clocks.Now()
		// In fake time the machine's own boot clock says nothing.
		r.Wall, r.Boot = r.Wall.Add(s.wall), time.Duration(r.At.UnixNano())+s.boot
		return r
	}
}

func (s *shift) move(wall, boot time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wall, s.boot = s.wall+wall, s.boot+boot
}

func keep(t *testing.T, c *Client, s *shift) (context.Context, *Kept) {
	t.Helper()
	s.install(c)
	ctx, kept := c.Keep(t.Context(), mustAcquire(t, c, 30*time.Second))
	t.Cleanup(kept.Stop)
	return ctx, kept
}

func TestASleepOfTheMachineEndsTheLeaseAtTheFirstLook(t *testing.T) {
	bubble(t, &server{}, Config{}, func(t *testing.T, c *Client) {
		var s shift
		_, kept := keep(t, c, &s)
		s.move(time.Minute, time.Minute)
		wantLoss(t, kept.Check(), ErrExpired)
	})
	bubble(t, &server{}, Config{}, func(t *testing.T, c *Client) {
		var s shift
		ctx, _ := keep(t, c, &s)
		s.move(time.Minute, time.Minute)
		after(time.Second) // nobody checks: the watchdog does
		wantLoss(t, context.Cause(ctx), ErrExpired)
	})
}

func TestAWallClockThatLeapsIsSuspectedUntilARenewalIsAnswered(t *testing.T) {
	srv := &server{}
	bubble(t, srv, Config{}, func(t *testing.T, c *Client) {
		var s shift
		ctx, kept := keep(t, c, &s)
		s.move(2*time.Second, 0) // within the margin
		if err := kept.Check(); err != nil {
			t.Fatalf("Check within the margin = %v", err)
		}
		s.move(time.Hour, 0) // somebody sets the clock
		if err := kept.Check(); !errors.Is(err, ErrSuspect) {
			t.Fatalf("Check = %v, want ErrSuspect", err)
		}
		if err := kept.Sure(t.Context()); err != nil {
			t.Errorf("Sure = %v, want nil once the renewal is answered", err)
		}
		if n := len(srv.calls(http.MethodPost, "/renew")); n != 1 {
			t.Errorf("%d renewals at once, want 1", n)
		}
		after(time.Minute)
		if ctx.Err() != nil {
			t.Errorf("lost: %v", context.Cause(ctx))
		}
	})
}

func TestASuspectedLeaseWithoutAnAnswerEndsWithinTheMargin(t *testing.T) {
	srv := &server{hook: func(n int, _ *http.Request) (*http.Response, error) {
		if n == 1 {
			return nil, nil //nolint:nilnil // not by the hook
		}
		return nil, errCut
	}}
	bubble(t, srv, Config{}, func(t *testing.T, c *Client) {
		var s shift
		ctx, kept := keep(t, c, &s)
		s.move(time.Hour, 0)
		after(time.Second) // the watchdog sees it
		if err := kept.Check(); !errors.Is(err, ErrSuspect) {
			t.Fatalf("Check = %v, want ErrSuspect", err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := kept.Sure(short); !errors.Is(err, ErrSuspect) {
			t.Errorf("Sure = %v when its context ends, want ErrSuspect", err)
		}
		after(3 * time.Second)
		wantLoss(t, context.Cause(ctx), ErrExpired)
	})
}

func TestADatabaseClockThatRunsAheadIsSuspected(t *testing.T) {
	srv := &server{}
	bubble(t, srv, Config{}, func(t *testing.T, c *Client) {
		var s shift
		ctx, kept := keep(t, c, &s)
		after(15 * time.Second) // one beat
		srv.do(func() {
			srv.skew = 20 * time.Second                      // we have stood still for 20 s
			srv.after = func(n int, r *http.Request) error { // the answer to the suspicion takes a second
				if strings.HasSuffix(r.URL.Path, "/renew") && n == 4 {
					<-time.After(time.Second)
				}
				return nil
			}
		})
		after(5 * time.Second) // the second beat
		if err := kept.Check(); !errors.Is(err, ErrSuspect) {
			t.Errorf("Check = %v, want ErrSuspect", err)
		}
		after(time.Second)
		synctest.Wait()
		if n, err := len(srv.calls(http.MethodPost, "/renew")), kept.Check(); n != 3 || err != nil {
			t.Errorf("%d beats, Check = %v: want a third at once, then nil", n, err)
		}
		after(time.Minute)
		if ctx.Err() != nil {
			t.Errorf("lost: %v", context.Cause(ctx))
		}
	})
}
