package web

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"strconv"
	"time"

	"pawl/lockrepo"
)

// acquire answers at once, granted or not: who is turned away asks again later.
func (a *api) acquire(c *call) error {
	body, idem, err := c.acquireBody()
	if err != nil {
		return err
	}
	q := lockrepo.Request{
		Lock: c.path.Resource, Holder: body.Owner, Key: c.key.ID, TTL: min(body.TTL, a.cfg.MaxHold), Reenter: true, RequestID: requestID(c.w),
	}
	l, err := a.grant(c, q, idem, body.TTL)
	var held *lockrepo.HeldError
	switch {
	case errors.As(err, &held):
		refused(c, held)
		return nil
	case err != nil:
		return err
	}
	a.cfg.Logger.InfoContext(c.r.Context(), "lock acquired", "lock", l.Token.Lock, "token", l.Token.Seq, "holder", l.Holder,
		"grant_id", l.Grant, "acquired_at", stamp(l.AcquiredAt), "expires_at", stamp(l.ExpiresAt), "key", c.key.Name, "request_id", q.RequestID)
	c.w.Header().Set("Fencing-Token", strconv.FormatInt(l.Token.Seq, 10))
	c.json(granted{true, lockOf(l)})
	return nil
}

// grant asks once, or as often as the client does with the same Idempotency-Key.
func (a *api) grant(c *call, q lockrepo.Request, idem string, asked time.Duration) (lockrepo.Lease, error) {
	if idem == "" {
		return a.cfg.API.AcquireRequest(c.r.Context(), q)
	}
	// Not the bytes but what they say: white space doesn't make another request.
	sum := sha256.Sum256([]byte(q.Holder + "\x00" + asked.String()))
	return a.cfg.API.AcquireIdempotent(c.r.Context(), q, idem, sum)
}

// refused says until when another has the lock. Our clock only picks the pause, which is bounded.
func refused(c *call, held *lockrepo.HeldError) {
	const least, most = 1, 30
	no := notGranted{Resource: c.path.Resource}
	wait := least
	if !held.ExpiresAt.IsZero() {
		until := stamp(held.ExpiresAt)
		no.ExpiresAt = &until
		wait = min(max(wholeSeconds(time.Until(held.ExpiresAt)), least), most)
	}
	c.w.Header().Set("Retry-After", strconv.Itoa(wait))
	c.json(no)
}

func (a *api) renew(c *call) error {
	body, _, err := c.acquireBody()
	if err != nil {
		return err
	}
	token, err := ifMatch(c.r.Header)
	if err != nil {
		return err
	}
	i, err := a.cfg.API.RenewAs(c.r.Context(), lockrepo.As{
		Lock: c.path.Resource, Holder: body.Owner, Key: c.key.ID, Token: token, TTL: body.TTL, MaxHold: a.cfg.MaxHold, RequestID: requestID(c.w),
	})
	if err != nil {
		return err
	}
	a.cfg.Logger.DebugContext(c.r.Context(), "lock renewed", "lock", i.Lock, "token", i.Token, "holder", i.Holder, "key", c.key.Name, "request_id", requestID(c.w))
	c.w.Header().Set("Fencing-Token", strconv.FormatInt(i.Token, 10))
	c.json(one{lockOfInfo(i)})
	return nil
}

func (a *api) release(c *call) error {
	body, err := c.body(false)
	if err != nil {
		return err
	}
	owner, faults, err := parseRelease(body, c.r.URL.RawQuery)
	if err != nil {
		return err
	}
	if faults = append(c.path.Faults, faults...); len(faults) > 0 {
		return invalid(faults)
	}
	token, err := ifMatch(c.r.Header)
	if err != nil {
		return err
	}
	err = a.cfg.API.ReleaseAs(c.r.Context(), lockrepo.As{Lock: c.path.Resource, Holder: owner, Key: c.key.ID, Token: token, RequestID: requestID(c.w)})
	if err != nil {
		return err
	}
	a.cfg.Logger.DebugContext(c.r.Context(), "lock released", "lock", c.path.Resource, "holder", owner, "key", c.key.Name, "request_id", requestID(c.w))
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
