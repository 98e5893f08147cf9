package lockclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// pause is how long to wait after n tries in vain: exponential, with full
// jitter, so that a crowd that was cut off together doesn't come back together.
func pause(n int, most time.Duration) time.Duration {
	ceiling := most
	if n < 16 {
		ceiling = min(firstPause<<n, most)
	}
	return rand.N(max(ceiling, time.Millisecond))
}

// passing reports whether the same call may fare better a little later. It
// says how long the server wants to be left alone.
func passing(err error) (after time.Duration, ok bool) {
	var e *StatusError
	if !errors.As(err, &e) {
		return 0, errors.Is(err, ErrUnanswered)
	}
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return e.after, true
	}
	return 0, false
}

// ask sends what next makes until it is answered, ctx ends, or
// Config.MaxElapsed is over. An error that time may mend matches
// [ErrUnanswered] when time is up.
func (c *Client) ask(ctx context.Context, next func() request) (answer, error) {
	start := c.now()
	for n := 0; ; n++ {
		a, err := c.tryOnce(ctx, next())
		after, again := passing(err)
		if err == nil || !again {
			return a, err
		}
		wait := after + pause(n, maxPause)
		if c.now().Proven(start)+wait >= c.cfg.MaxElapsed || !sleep(ctx, wait) {
			if !errors.Is(err, ErrUnanswered) {
				err = unansweredError{err}
			}
			return a, err
		}
		c.cfg.Logger.DebugContext(ctx, "lockclient: asking again", "tries", n+1, "error", err)
	}
}

// tryOnce is once, with a limit of its own.
func (c *Client) tryOnce(ctx context.Context, q request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.once(ctx, q)
}

// sleep waits for d. It reports false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
