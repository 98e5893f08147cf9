package lockclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	callTimeout = 10 * time.Second // bounds one try that has no deadline of its own
	maxAnswer   = 1 << 20          // bytes; longer ones aren't from this API
	maxPlain    = 200              // bytes; of a refusal that isn't from this API, to be shown
)

// request is one call of the API.
type request struct {
	method, lock, action, query string // action: what follows the lock's name, /renew or /history
	token                       string // If-Match; empty: none
	key                         string // Idempotency-Key; empty: none
	body                        any
}

// answer is what the server said with a 2xx.
type answer struct {
	status int
	after  time.Duration // Retry-After
	body   []byte
}

// once sends q and returns its answer, a [*StatusError], or an error that
// matches [ErrUnanswered].
func (c *Client) once(ctx context.Context, q request) (answer, error) {
	r, err := c.request(ctx, q)
	if err != nil {
		return answer{}, err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return answer{}, noAnswer(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read, or isn't of interest
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return answer{}, noAnswer(err)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusNoContent, resp.StatusCode == http.StatusOK && kind == "application/json":
		return answer{resp.StatusCode, retryAfter(resp.Header), body}, nil
	case resp.StatusCode/100 == 2:
		return answer{}, noAnswer(fmt.Errorf("a %d of type %q, which is not this API's", resp.StatusCode, kind))
	}
	return answer{}, statusError(resp, kind, body)
}

func (c *Client) request(ctx context.Context, q request) (*http.Request, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	body := []byte(nil)
	if q.body != nil {
		if body, err = json.Marshal(q.body); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, q.method, c.url(q), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"Idempotency-Key": q.key, "If-Match": q.token} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return r, nil
}

// url keeps a name with slashes and dots in one segment.
func (c *Client) url(q request) string {
	name := url.PathEscape(q.lock)
	if q.lock == "." || q.lock == ".." {
		name = strings.ReplaceAll(q.lock, ".", "%2E")
	}
	u := c.base.String() + "/locks/" + name + q.action
	if q.query != "" {
		u += "?" + q.query
	}
	return u
}

func statusError(resp *http.Response, kind string, body []byte) error {
	e := &StatusError{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id"), after: retryAfter(resp.Header)}
	if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 {
		e.Detail = fmt.Sprintf("it redirects to %q, which is not followed: give the server's own address", to)
	}
	if (kind == "" || kind == "text/plain") && len(body) < maxPlain { // as of a server that speaks https and was asked for http
		e.Detail = strings.ToValidUTF8(strings.TrimSpace(string(body)), "")
	}
	var p struct{ Type, Detail string }
	if kind == "application/problem+json" && json.Unmarshal(body, &p) == nil {
		e.Slug, e.Detail = path.Base(p.Type), p.Detail
	}
	return e
}

func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, time.Minute)
}

// unansweredError is a call whose outcome isn't known.
type unansweredError struct{ error }

// Unwrap returns what happened and [ErrUnanswered].
func (e unansweredError) Unwrap() []error { return []error{e.error, ErrUnanswered} }

// noAnswer leaves out the address, which the caller knows.
func noAnswer(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return unansweredError{err}
}

// unsent reports whether the server can't have got the request.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// slug is that of the problem which err is, or empty.
func slug(err error) string {
	var e *StatusError
	if errors.As(err, &e) {
		return e.Slug
	}
	return ""
}
