package lockclient

import (
	"context"
	"net/http"
)

// Release ends l now. It answers a [*LostError], which is [ErrNotHeld], if the
// lease had ended otherwise; a lease that its holder has released already, as
// by a try whose reply was lost, is no error.
func (c *Client) Release(ctx context.Context, l Lease) error {
	_, err := c.ask(ctx, func() request { return releaseRequest(l, etag(l.Token.Seq)) })
	switch {
	case err == nil:
		c.cfg.Logger.DebugContext(ctx, "lockclient: lock released", "token", l.Token)
		return nil
	case slug(err) == "not-found":
		lost, released := c.whyLost(ctx, l)
		if released {
			return nil
		}
		return lost
	}
	return c.orLost(ctx, "release", l, err)
}

func releaseRequest(l Lease, token string) request {
	body := struct {
		Owner string `json:"owner"`
	}{l.Holder}
	return request{method: http.MethodDelete, lock: l.Token.Lock, token: token, body: body}
}
