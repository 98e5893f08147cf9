package lockclient

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"pawl/fence"
	"pawl/internal/clocks"
)

// lockJSON is a live lock in an answer.
type lockJSON struct {
	Resource     string    `json:"resource"`
	Owner        string    `json:"owner"`
	FencingToken int64     `json:"fencing_token"`
	TTLSeconds   float64   `json:"ttl_seconds"`
	AcquiredAt   time.Time `json:"acquired_at"`
	RenewedAt    time.Time `json:"renewed_at"`
	ExpiresAt    time.Time `json:"expires_at"`
}

type acquireJSON struct {
	Acquired  bool       `json:"acquired"`
	Lock      lockJSON   `json:"lock"`
	ExpiresAt *time.Time `json:"expires_at"`
}

// claim is the body of an acquire and of a renewal.
type claim struct {
	Owner string `json:"owner"`
	TTL   int64  `json:"ttl_seconds"`
}

// Acquire asks for the lock for ttl (0: Config.TTL; else whole seconds from 1 s
// to 24 h). If somebody holds it, this process included, it answers a
// [*HeldError], which is [ErrHeld]. A call that isn't answered is sent again
// with the same idempotency key, for Config.MaxElapsed at most; then the error
// matches [ErrUnanswered], and what may have been granted is given back as well
// as can be.
func (c *Client) Acquire(ctx context.Context, lock string, ttl time.Duration) (Lease, error) {
	ttl = cmp.Or(ttl, c.cfg.TTL)
	if err := cmp.Or(checkName(lock), checkTTL(ttl)); err != nil {
		return Lease{}, fmt.Errorf("lockclient: acquire: %w", err)
	}
	l, err := c.acquire(ctx, Lease{Token: fence.Token{Lock: lock}, Holder: c.owner(), TTL: ttl, term: ttl, margin: c.margin(ttl)})
	if err == nil || errors.Is(err, ErrHeld) {
		return l, err
	}
	return Lease{}, fmt.Errorf("lockclient: acquire %q: %w", lock, err)
}

func (c *Client) acquire(ctx context.Context, l Lease) (Lease, error) {
	body := claim{l.Holder, int64(l.TTL / time.Second)}
	var key string
	a, err := c.ask(ctx, func() request {
		// A retry is answered with the grant of an earlier try, whose time runs
		// since then. When half of it is gone, a new key asks for a new grant.
		if now := c.now(); key == "" || now.Proven(l.sent) > l.trusted()/2 {
			key, l.sent = rand.Text(), now
		}
		return request{method: http.MethodPost, lock: l.Token.Lock, key: key, body: body}
	})
	switch {
	case errors.Is(err, ErrUnanswered) && !unsent(err):
		c.undo(ctx, l)
		return Lease{}, err
	case err != nil:
		return Lease{}, err
	}
	var got acquireJSON
	if err := json.Unmarshal(a.body, &got); err != nil {
		return Lease{}, fmt.Errorf("answer is not this API's: %w", err)
	}
	if !got.Acquired {
		held := &HeldError{Lock: l.Token.Lock, RetryAfter: a.after}
		if got.ExpiresAt != nil {
			held.ExpiresAt = got.ExpiresAt.UTC()
		}
		return Lease{}, held
	}
	l.Token.Seq = got.Lock.FencingToken
	l, err = l.as(got.Lock, l.sent)
	l.margin = c.margin(l.term) // a server may cut a lease from the start
	if left := l.left(c.now()); err == nil && left <= 0 {
		c.undo(ctx, l)
		return Lease{}, unansweredError{fmt.Errorf("the answer came after the lease's end")}
	}
	return l, err
}

// as is l as the server describes it.
func (l Lease) as(got lockJSON, sent clocks.Reading) (Lease, error) {
	if got.Resource != l.Token.Lock || got.Owner != l.Holder || got.FencingToken != l.Token.Seq || got.FencingToken <= 0 {
		return Lease{}, fmt.Errorf("answer is about %q, held by %q with token %d: not what was asked for", got.Resource, got.Owner, got.FencingToken)
	}
	// It may last for less than was asked for, never for longer.
	if l.term = min(l.TTL, time.Duration(got.TTLSeconds*float64(time.Second))); l.term <= 0 {
		return Lease{}, fmt.Errorf("answer has a ttl_seconds of %v: not one of this API", got.TTLSeconds)
	}
	l.AcquiredAt, l.ExpiresAt, l.renewed, l.sent = got.AcquiredAt.UTC(), got.ExpiresAt.UTC(), got.RenewedAt.UTC(), sent
	return l, nil
}

// undo releases what an acquire without an answer may have been granted: the
// holder is this acquisition's own, so any token of its will do.
func (c *Client) undo(ctx context.Context, l Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := c.once(ctx, releaseRequest(l, "*")); err == nil {
		c.cfg.Logger.InfoContext(ctx, "lockclient: unanswered grant released", "lock", l.Token.Lock, "holder", l.Holder)
	}
}

// AcquireWait is [Client.Acquire], asked again every second or two, or when the
// present lease is said to end, for atMost. Then it answers the last error: a
// [*HeldError], or one that matches [ErrUnanswered].
func (c *Client) AcquireWait(ctx context.Context, lock string, ttl, atMost time.Duration) (Lease, error) {
	start := c.now()
	for {
		l, err := c.Acquire(ctx, lock, ttl)
		var held *HeldError
		wait := time.Second + mathrand.N(time.Second)
		switch {
		case err == nil:
			return l, nil
		case errors.As(err, &held):
			if held.RetryAfter > 0 {
				wait = min(wait, held.RetryAfter)
			}
		case !errors.Is(err, ErrUnanswered):
			return Lease{}, err
		}
		wait = min(wait, atMost-c.now().Proven(start))
		if wait <= 0 || !sleep(ctx, wait) {
			return Lease{}, errors.Join(err, ctx.Err())
		}
	}
}
