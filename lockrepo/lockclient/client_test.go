package lockclient

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestALostReplyToAnAcquireIsTheSameGrantCountedFromTheFirstTry(t *testing.T) {
	s := &server{travel: time.Second}
	s.after = func(n int, _ *http.Request) error {
		if n == 1 {
			return errCut
		}
		return nil
	}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		start := time.Now()
		l := mustAcquire(t, c, 30*time.Second)
		posts := s.calls(http.MethodPost, "/x")
		if len(posts) != 2 || posts[0].key == "" || posts[0].key != posts[1].key || posts[0].owner != posts[1].owner {
			t.Errorf("asked %+v: want two tries with one key and one owner", posts)
		}
		if l.Token.Seq != 1 || l.Token.Lock != "x" {
			t.Errorf("token %v, want the first try's", l.Token)
		}
		if got, want := l.Left(), 27*time.Second-time.Since(start); got != want {
			t.Errorf("%v left, want %v: TTL less the margin, from before the first try", got, want)
		}
	})
}

func TestARetryThatComesTooLateForItsGrantAsksForANewOne(t *testing.T) {
	s := &server{}
	s.after = func(n int, r *http.Request) error {
		if n == 1 {
			<-r.Context().Done() // 10 s
			return r.Context().Err()
		}
		return nil
	}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		l := mustAcquire(t, c, 12*time.Second)
		posts := s.calls(http.MethodPost, "/x")
		if len(posts) != 2 || posts[0].key == posts[1].key || posts[0].owner != posts[1].owner || l.Token.Seq != 2 {
			t.Errorf("asked %+v, token %v: want another key, the same owner and a new token", posts, l.Token)
		}
		if left := l.Left(); left < l.trusted()-time.Second/10 {
			t.Errorf("%v left, want all %v", left, l.trusted())
		}
	})
}

func TestTheTimeOfTheAnswerIsTheHoldersLoss(t *testing.T) {
	s := &server{travel: 4 * time.Second}
	bubble(t, s, Config{Margin: time.Second}, func(t *testing.T, c *Client) {
		l := mustAcquire(t, c, 10*time.Second)
		if l.Left() != 5*time.Second {
			t.Errorf("%v left, want 5s", l.Left())
		}
		l, err := c.Renew(t.Context(), l)
		if err != nil || l.Left() != 5*time.Second {
			t.Errorf("after Renew %v left, %v; want 5s", l.Left(), err)
		}
	})
}

func TestARenewalThatIsSentAgainCountsFromItsLastTry(t *testing.T) {
	s := &server{}
	s.hook = func(n int, _ *http.Request) (*http.Response, error) {
		if n != 2 {
			return nil, nil //nolint:nilnil // not by the hook
		}
		resp := refuse(503)
		resp.Header.Set("Retry-After", "5")
		return resp, nil
	}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		l, err := c.Renew(t.Context(), mustAcquire(t, c, 30*time.Second))
		if err != nil || l.Left() < 26*time.Second {
			t.Errorf("%v left, %v; want all", l.Left(), err)
		}
	})
}

func TestAnAcquireWithoutAnAnswerIsGivenBack(t *testing.T) {
	s := &server{}
	s.after = func(_ int, r *http.Request) error {
		if r.Method == http.MethodPost {
			return errCut
		}
		return nil
	}
	bubble(t, s, Config{MaxElapsed: 20 * time.Second}, func(t *testing.T, c *Client) {
		start := time.Now()
		_, err := c.Acquire(t.Context(), "x", 0)
		if !errors.Is(err, ErrUnanswered) || !errors.Is(err, errCut) {
			t.Errorf("Acquire = %v, want ErrUnanswered and what happened", err)
		}
		if d := time.Since(start); d < 10*time.Second || d > 21*time.Second {
			t.Errorf("gave up after %v, want Config.MaxElapsed at most", d)
		}
		deletes := s.calls(http.MethodDelete, "/x")
		if len(deletes) != 1 || deletes[0].match != "*" || s.owner != "" {
			t.Errorf("given back %+v, held by %q", deletes, s.owner)
		}
	})
}

func TestEveryAcquisitionHasAnOwnerAndAKeyOfItsOwn(t *testing.T) {
	s := &server{}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		for range 2 {
			if err := c.Release(t.Context(), mustAcquire(t, c, 0)); err != nil {
				t.Fatal(err)
			}
		}
		posts := s.calls(http.MethodPost, "/x")
		if posts[0].owner == posts[1].owner || posts[0].key == posts[1].key || !strings.HasPrefix(posts[0].owner, "a/") {
			t.Errorf("asked %+v", posts)
		}
	})
}

func TestAHeldLockIsAnErrorWithTheLeasesEnd(t *testing.T) {
	s := &server{}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		mustAcquire(t, c, 30*time.Second)
		_, err := c.Acquire(t.Context(), "x", 0)
		var held *HeldError
		if !errors.Is(err, ErrHeld) || !errors.As(err, &held) || !held.ExpiresAt.Equal(s.expires) || held.Lock != "x" || held.RetryAfter != time.Second {
			t.Errorf("Acquire = %v (%+v), want a HeldError until %v", err, held, s.expires)
		}
		if n := len(s.calls(http.MethodPost, "/x")); n != 2 {
			t.Errorf("asked %d times: a lock that is held is an answer", n)
		}
	})
}

func TestWaitingAsksUntilTheLockIsFreeOrTimeIsUp(t *testing.T) {
	s := &server{}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		s.take("b", 10*time.Second)
		start := time.Now()
		if _, err := c.AcquireWait(t.Context(), "x", 0, 5*time.Second); !errors.Is(err, ErrHeld) || time.Since(start) != 5*time.Second {
			t.Errorf("AcquireWait = %v after %v, want ErrHeld after 5s", err, time.Since(start))
		}
		if n := len(s.calls(http.MethodPost, "/x")); n < 3 || n > 7 {
			t.Errorf("asked %d times in 5 s, want about every second", n)
		}
		if _, err := c.AcquireWait(t.Context(), "x", 0, time.Minute); err != nil || time.Since(start) > 12*time.Second {
			t.Errorf("AcquireWait = %v after %v, want the lock once it is free", err, time.Since(start))
		}
	})
}

func TestARefusedRequestIsNotAskedAgain(t *testing.T) {
	for _, status := range []int{302, 400, 401, 403, 413, 422} {
		s := &server{hook: func(int, *http.Request) (*http.Response, error) {
			resp := refuse(status)
			resp.Header.Set("Location", "http://elsewhere.test/")
			resp.Header.Set("X-Request-Id", "r1")
			return resp, nil
		}}
		bubble(t, s, Config{}, func(t *testing.T, c *Client) {
			_, err := c.Acquire(t.Context(), "x", 0)
			var e *StatusError
			if !errors.As(err, &e) || e.Status != status || errors.Is(err, ErrUnanswered) || e.RequestID != "r1" {
				t.Errorf("%d: Acquire = %v", status, err)
			}
			if len(s.asked) != 1 {
				t.Errorf("%d: asked %d times, once is enough; no redirect is followed", status, len(s.asked))
			}
		})
	}
}

// As http to a server that speaks https is answered.
func TestAShortPlainRefusalIsShown(t *testing.T) {
	for _, c := range []struct{ kind, body, want string }{
		{"", "speak TLS\n", "server answered 400: speak TLS"}, // Go's own, without a type
		{"text/plain; charset=utf-8", "speak TLS\n", "server answered 400: speak TLS"},
		{"text/html", "<h1>No</h1>", "server answered 400"},
		{"", strings.Repeat("x", maxPlain), "server answered 400"},
	} {
		s := &server{hook: func(int, *http.Request) (*http.Response, error) {
			resp := refuse(400)
			resp.Header.Set("Content-Type", c.kind)
			resp.Body = io.NopCloser(strings.NewReader(c.body))
			return resp, nil
		}}
		bubble(t, s, Config{}, func(t *testing.T, client *Client) {
			if _, err := client.Acquire(t.Context(), "x", 0); err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("Acquire = %v, want it to end in %q", err, c.want)
			}
		})
	}
}

func TestABusyServerIsLeftAloneForAsLongAsItAsks(t *testing.T) {
	s := &server{hook: func(n int, _ *http.Request) (*http.Response, error) {
		if n > 1 {
			return nil, nil //nolint:nilnil // not by the hook
		}
		resp := refuse(503)
		resp.Header.Set("Retry-After", "7")
		return resp, nil
	}}
	bubble(t, s, Config{}, func(t *testing.T, c *Client) {
		start := time.Now()
		mustAcquire(t, c, 0)
		if d := time.Since(start); d < 7*time.Second || d > 7100*time.Millisecond {
			t.Errorf("asked again after %v, want 7 s and some jitter", d)
		}
	})
}

func TestPausesGrowWithFullJitterUpToALimit(t *testing.T) {
	for n, most := range map[int]time.Duration{0: 100 * time.Millisecond, 3: 800 * time.Millisecond, 10: maxPause, 70: maxPause} {
		least, largest := maxPause, time.Duration(0)
		for range 2000 {
			p := pause(n, maxPause)
			least, largest = min(least, p), max(largest, p)
		}
		if least > most/20 || largest < most*9/10 || largest >= most {
			t.Errorf("after %d tries between %v and %v, want anything from 0 to %v", n, least, largest, most)
		}
	}
}

func TestANameStaysInOneSegmentOfTheAddress(t *testing.T) {
	for name, want := range map[string]string{
		"a/renew": "/pawl/locks/a%2Frenew", "..": "/pawl/locks/%2E%2E", ".": "/pawl/locks/%2E", "a b?c#d%": "/pawl/locks/a%20b%3Fc%23d%25",
		"é": "/pawl/locks/%C3%A9", "a//b": "/pawl/locks/a%2F%2Fb",
	} {
		s := &server{hook: func(int, *http.Request) (*http.Response, error) { return refuse(401), nil }}
		bubble(t, s, Config{Server: "http://locks.test/pawl/"}, func(t *testing.T, c *Client) {
			if _, err := c.Acquire(t.Context(), name, 0); err == nil || s.asked[0].path != want {
				t.Errorf("%q is asked for at %s, want %s", name, s.asked[0].path, want)
			}
		})
	}
}

func TestTheKeyFileIsReadAgainForEachRequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	write := func(s string) {
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one\n")
	s := &server{}
	bubble(t, s, Config{KeyFile: file}, func(t *testing.T, c *Client) {
		l := mustAcquire(t, c, 0)
		write("two")
		if err := c.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if s.asked[0].who != "Bearer one" || s.asked[1].who != "Bearer two" {
			t.Errorf("signed in as %q, then %q", s.asked[0].who, s.asked[1].who)
		}
	})
	write("Authorization: Bearer three")
	if _, err := New(Config{Server: "http://locks.test", KeyFile: file}); err == nil || !strings.Contains(err.Error(), "more in it than a key") {
		t.Errorf("New with a header in the key file: %v", err)
	}
	write(" ")
	if _, err := New(Config{Server: "http://locks.test", KeyFile: file}); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("New with an empty key file: %v", err)
	}
}

func TestAnIncompleteConfigIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	const server = "https://locks.test"
	for want, cfg := range map[string]Config{
		"give the address of pawl serve": {Server: "locks.test:80"},
		"leave out user":                 {Server: "https://me@locks.test"},
		"give one of them":               {Server: server, Key: "a", KeyFile: "b"},
		"shorten it":                     {Server: server, Holder: strings.Repeat("a", 201)},
		"below half the TTL":             {Server: server, Margin: 15 * time.Second},
		"Config.Grace is -1s":            {Server: server, Grace: -time.Second},
		"Config.MaxElapsed is -1s":       {Server: server, MaxElapsed: -time.Second},
		"give whole seconds":             {Server: server, TTL: 1500 * time.Millisecond},
		"read the key":                   {Server: server, KeyFile: "/does/not/exist"},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want it to say %q", err, want)
		}
	}
	c, err := New(Config{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", strings.Repeat("a", 256), "a\x00", "\xff"} {
		if _, err := c.Acquire(t.Context(), name, 0); err == nil || errors.Is(err, ErrUnanswered) {
			t.Errorf("Acquire(%q) = %v", name, err)
		}
	}
}
