package lockclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Renew extends l by its TTL from now. It answers a [*LostError], which is
// [ErrNotHeld], if the lease has ended: one that has ended is never revived,
// and the token never changes. A call that isn't answered is sent again until l
// can't be trusted any more, or for Config.MaxElapsed.
func (c *Client) Renew(ctx context.Context, l Lease) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, max(l.left(c.now()), minCall))
	defer cancel()
	sent := c.now()
	a, err := c.ask(ctx, func() request {
		sent = c.now()
		return renewRequest(l)
	})
	if err == nil {
		if l, err = c.renewed(l, a); err == nil {
			l.sent = sent
			return l, nil
		}
	}
	return Lease{}, c.orLost(ctx, "renew", l, err)
}

// renewOnce is one try of Renew.
func (c *Client) renewOnce(ctx context.Context, l Lease) (Lease, error) {
	sent := c.now()
	a, err := c.once(ctx, renewRequest(l))
	if err == nil {
		var next Lease
		if next, err = c.renewed(l, a); err == nil {
			next.sent = sent
			return next, nil
		}
	}
	return Lease{}, c.orLost(ctx, "renew", l, err)
}

func renewRequest(l Lease) request {
	return request{
		method: http.MethodPost, lock: l.Token.Lock, action: "/renew",
		token: etag(l.Token.Seq), body: claim{l.Holder, int64(l.TTL / time.Second)},
	}
}

func etag(token int64) string { return `"` + strconv.FormatInt(token, 10) + `"` }

// renewed is l as an answer to its renewal describes it.
func (c *Client) renewed(l Lease, a answer) (Lease, error) {
	var got struct {
		Lock lockJSON `json:"lock"`
	}
	if err := json.Unmarshal(a.body, &got); err != nil {
		return Lease{}, fmt.Errorf("answer is not this API's: %w", err)
	}
	return l.as(got.Lock, l.sent)
}
