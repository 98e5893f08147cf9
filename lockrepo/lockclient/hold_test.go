package lockclient

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func wantLoss(t *testing.T, got, cause error) {
	t.Helper()
	var lost *LostError
	if !errors.Is(got, cause) || !errors.Is(got, ErrNotHeld) || !errors.As(got, &lost) {
		t.Errorf("ended with %v, want a LostError with %v", got, cause)
	}
}

func TestALeaseIsRenewedForAnHourAtAThirdOfItsTTLThenReleased(t *testing.T) {
	s := &server{}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		err := c.Hold(t.Context(), "x", func(ctx context.Context, l Lease) error {
			after(time.Hour)
			if ctx.Err() != nil || l.Token.Seq != 1 {
				t.Errorf("lost: %v", context.Cause(ctx))
			}
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("Hold = %v", err)
		}
		renewals, deletes := s.calls(http.MethodPost, "/renew"), s.calls(http.MethodDelete, "/x")
		if n := len(renewals); n < 359 || n > 361 {
			t.Errorf("%d renewals in an hour, want 360: one every TTL/3", n)
		}
		for _, q := range append(renewals, deletes...) {
			if q.match != `"1"` {
				t.Fatalf("%s with If-Match %s: want the token", q.method, q.match)
			}
		}
		if owner, _ := s.now(); len(deletes) != 1 || owner != "" {
			t.Errorf("%d releases, held by %q", len(deletes), owner)
		}
	})
}

func TestHoldAnswersTheLossWithItsCause(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(s *server)
		want error
		next int64
	}{
		"forced":                {func(s *server) { s.end("forced", nil) }, ErrForced, 0},
		"expired":               {func(s *server) { s.expires = time.Now() }, ErrExpired, 0},
		"taken over":            {func(s *server) { s.take("b", time.Minute) }, ErrTakenOver, 2},
		"reacquired":            {func(s *server) { s.end("reacquired", nil) }, ErrTakenOver, 0},
		"history says nothing":  {func(s *server) { s.owner, s.history = "b", nil }, ErrExpired, 0},
		"released in our name":  {func(s *server) { s.end("released", nil) }, ErrNotHeld, 0},
		"later ones have ended": {func(s *server) { s.take("b", 0); s.take("c", 0); s.end("released", nil); s.history = s.history[:2] }, ErrTakenOver, 2},
	} {
		s := &server{}
		bubble(t, s, Config{}, func(t *testing.T, cl *Client) {
			start := time.Now()
			var inside error
			err := cl.Hold(t.Context(), "x", func(ctx context.Context, _ Lease) error {
				s.do(func() { c.lose(s) })
				<-ctx.Done()
				inside = context.Cause(ctx)
				return nil // it hasn't noticed
			})
			t.Log(name, err)
			wantLoss(t, inside, c.want)
			wantLoss(t, err, c.want)
			var lost *LostError
			if errors.As(err, &lost) && lost.Successor != c.next {
				t.Errorf("%s: successor %d, want %d", name, lost.Successor, c.next)
			}
			if d := time.Since(start); d != 10*time.Second {
				t.Errorf("%s: noticed after %v, want 10s: with the first beat", name, d)
			}
		})
	}
}

func TestALossThatNoBeatHasSeenIsFoundByTheRelease(t *testing.T) {
	s := &server{}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		err := c.Hold(t.Context(), "x", func(context.Context, Lease) error {
			s.do(func() { s.end("forced", nil) })
			return nil
		})
		wantLoss(t, err, ErrForced)
		mine := errors.New("mine")
		if err := c.Hold(t.Context(), "x", func(context.Context, Lease) error { return mine }); err != mine { //nolint:errorlint // the very error
			t.Errorf("Hold = %v, want the function's own error", err)
		}
		func() {
			defer func() { _ = recover() }()
			_ = c.Hold(t.Context(), "x", func(context.Context, Lease) error { panic("boom") })
		}()
		if owner, _ := s.now(); owner != "" {
			t.Error("not released after a panic")
		}
	})
}

func TestAReleaseWhoseReplyIsLostIsDone(t *testing.T) {
	s := &server{}
	lose := true
	s.after = func(_ int, r *http.Request) error {
		if r.Method == http.MethodDelete && lose {
			lose = false
			return errCut
		}
		return nil
	}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		l := mustAcquire(t, c, 0)
		if err := c.Release(t.Context(), l); err != nil {
			t.Errorf("Release = %v", err)
		}
		if n := len(s.calls(http.MethodDelete, "/x")); n != 2 {
			t.Errorf("%d releases sent, want 2", n)
		}
		mustAcquire(t, c, 0)
		wantLoss(t, c.Release(t.Context(), Lease{Token: l.Token, Holder: "b", TTL: time.Minute}), ErrNotHeld)
	})
}

func TestAnUnansweredLeaseEndsBeforeItsEnd(t *testing.T) {
	for name, hook := range map[string]func(r *http.Request) (*http.Response, error){
		"cut": func(*http.Request) (*http.Response, error) { return nil, errCut },
		"hangs": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
		"database away":       func(*http.Request) (*http.Response, error) { return refuse(503), nil },
		"key revoked":         func(*http.Request) (*http.Response, error) { return refuse(401), nil },
		"another's 404":       func(*http.Request) (*http.Response, error) { return reply(404, "no such page"), nil },
		"a page of a proxy":   func(*http.Request) (*http.Response, error) { return reply(200, "sign in here"), nil },
		"about another token": func(r *http.Request) (*http.Response, error) { return about(r, 2), nil },
		"about another's lock": func(*http.Request) (*http.Response, error) {
			return reply(200, map[string]any{"lock": lockJSON{Resource: "y", FencingToken: 1}}), nil
		},
	} {
		s := &server{}
		s.hook = func(n int, r *http.Request) (*http.Response, error) {
			if n == 1 {
				return nil, nil //nolint:nilnil // not by the hook
			}
			return hook(r)
		}
		bubble(t, s, Config{}, func(t *testing.T, c *Client) {
			start := time.Now()
			ctx, kept := c.Keep(t.Context(), mustAcquire(t, c, 30*time.Second))
			defer kept.Stop()
			<-ctx.Done()
			wantLoss(t, context.Cause(ctx), ErrExpired)
			if d := time.Since(start); d != 27*time.Second {
				t.Errorf("%s: ended after %v, want 27s: TTL less the margin", name, d)
			}
			n := len(s.calls(http.MethodPost, "/renew"))
			if n < 2 || n > 40 {
				t.Errorf("%s: asked %d times in 17 s", name, n)
			}
			after(time.Hour)
			if len(s.calls(http.MethodPost, "/renew")) != n {
				t.Errorf("%s: a lease that has ended is still asked for", name)
			}
		})
	}
}

// about answers a renewal as a grant of another token of the caller's.
func about(r *http.Request, token int64) *http.Response {
	var body claim
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return reply(400, err.Error())
	}
	return reply(200, map[string]any{"lock": lockJSON{Resource: "x", Owner: body.Owner, FencingToken: token}})
}

func TestARenewalCountsFromBeforeItWasSent(t *testing.T) {
	s := &server{travel: 4 * time.Second}
	s.hook = func(n int, _ *http.Request) (*http.Response, error) {
		if n > 2 {
			return nil, errCut
		}
		return nil, nil //nolint:nilnil // not by the hook
	}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		start := time.Now()
		ctx, kept := c.Keep(t.Context(), mustAcquire(t, c, 30*time.Second))
		defer kept.Stop()
		<-ctx.Done()
		if d := time.Since(start); d != 37*time.Second {
			t.Errorf("ended after %v, want 37s: asked after 10, trusted for 27 from then, though the answer took 4", d)
		}
	})
}

func TestABlipIsRiddenOut(t *testing.T) {
	s := &server{}
	start := time.Time{}
	s.hook = func(_ int, r *http.Request) (*http.Response, error) {
		if d := time.Since(start); strings.HasSuffix(r.URL.Path, "/renew") && d > 15*time.Second && d < 33*time.Second {
			return nil, errCut
		}
		return nil, nil //nolint:nilnil // not by the hook
	}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		start = time.Now()
		ctx, kept := c.Keep(t.Context(), mustAcquire(t, c, 30*time.Second))
		defer kept.Stop()
		after(time.Hour)
		if ctx.Err() != nil {
			t.Errorf("lost: %v", context.Cause(ctx))
		}
	})
}

func TestRenewalsGoOnForTheGraceAfterTheContextHasEnded(t *testing.T) {
	s := &server{}
	bubble(t, s, Config{Grace: time.Minute}, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithCancel(t.Context())
		err := c.Hold(ctx, "x", func(held context.Context, _ Lease) error {
			cancel()
			after(59 * time.Second)
			if _, end := s.now(); held.Err() == nil || time.Until(end) < 20*time.Second {
				t.Errorf("context %v, lease ends in %v: want it renewed all along", held.Err(), time.Until(end))
			}
			after(time.Minute)
			return nil
		})
		if _, end := s.now(); !errors.Is(err, ErrGraceOver) || time.Now().Before(end) {
			t.Errorf("Hold = %v, want ErrGraceOver and no more renewals", err)
		}
	})
}

func TestCompletingIsNoLoss(t *testing.T) {
	s := &server{}
	s.after = func(_ int, r *http.Request) error {
		if strings.HasSuffix(r.URL.Path, "/renew") {
			<-time.After(time.Second)
		}
		return nil
	}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		ctx, kept := c.Keep(t.Context(), mustAcquire(t, c, 30*time.Second))
		s.do(func() { s.end("released", nil) })
		<-time.After(10 * time.Second) // the beat is on its way
		kept.Completing()
		after(10 * time.Minute)
		if err := kept.Check(); ctx.Err() != nil || err != nil {
			t.Errorf("lost while completing: %v, %v", context.Cause(ctx), err)
		}
		kept.Stop()
		if kept.Stop(); !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("after Stop: %v", context.Cause(ctx))
		}
	})
}

func TestALeaseThatIsOverIsNotKept(t *testing.T) {
	s := &server{}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		l := mustAcquire(t, c, 30*time.Second)
		after(28 * time.Second)
		ctx, kept := c.Keep(t.Context(), l)
		wantLoss(t, context.Cause(ctx), ErrExpired)
		wantLoss(t, kept.Check(), ErrExpired)
		synctest.Wait()
		if len(s.calls(http.MethodPost, "/renew")) != 0 {
			t.Error("it was renewed")
		}
	})
}

// What a renewal is given may end earlier than what was asked for: nobody may believe in the lease for longer.
func TestALeaseThatTheServerCutsIsBelievedInNoLonger(t *testing.T) {
	for name, maxHold := range map[string]time.Duration{"at a renewal": 45 * time.Second, "from the start": 20 * time.Second, "to a moment": time.Second} {
		s := &server{maxHold: maxHold}
		bubble(t, s, Config{}, func(t *testing.T, c *Client) {
			start := time.Now()
			ctx, kept := c.Keep(t.Context(), mustAcquire(t, c, 30*time.Second))
			defer kept.Stop()
			for ctx.Err() == nil {
				if l := kept.Lease(); l.TTL != 30*time.Second || l.Left() > time.Until(start.Add(maxHold)) {
					t.Fatalf("%s: after %v %v left of %+v", name, time.Since(start), l.Left(), l)
				}
				after(10 * time.Millisecond)
			}
			if d := time.Since(start); d >= maxHold || d < maxHold*8/10 {
				t.Errorf("%s: lost after %v, want shortly before %v", name, d, maxHold)
			}
			wantLoss(t, context.Cause(ctx), ErrExpired)
			for _, q := range s.calls(http.MethodPost, "") {
				if q.ttl != 30*time.Second {
					t.Errorf("%s: asked for %v, want the TTL all along", name, q.ttl)
				}
			}
		})
	}
}

func TestAnAnswerWithoutATTLIsNoGrant(t *testing.T) {
	s := &server{}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		s.hook = func(int, *http.Request) (*http.Response, error) {
			return reply(200, map[string]any{"acquired": true, "lock": map[string]any{"resource": "x", "owner": s.asked[0].owner, "fencing_token": 1}}), nil
		}
		if l, err := c.Acquire(t.Context(), "x", 0); err == nil {
			t.Errorf("Acquire = %+v", l)
		}
	})
}
