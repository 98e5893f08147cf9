package kinds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"pawl/jobs"
)

// httpWork is an [HTTP] that is ready to be sent.
type httpWork struct {
	HTTP
	want   any
	client http.Client
}

// run sends the request and says what has become of it.
func (w httpWork) run(ctx context.Context, run *jobs.Run, rec *recorder) error {
	key, err := run.EffectKey(ctx)
	if err != nil {
		return err
	}
	req, err := w.request(ctx, run, key)
	if err != nil {
		return fmt.Errorf("%w: %w", jobs.ErrNoRetry, err)
	}
	sent := new(atomic.Bool)
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}
	res, err := w.client.Do(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if res != nil {
		defer func() { _ = res.Body.Close() }()
	}
	switch {
	case errors.Is(err, errElsewhere):
		return w.failed(err)
	case err != nil && sent.Load():
		return w.unanswered(ctx, err)
	case err != nil:
		return w.unconnected(ctx, err)
	}
	return w.judge(ctx, run, res, rec)
}

func (w httpWork) request(ctx context.Context, run *jobs.Run, key string) (*http.Request, error) {
	value := values(run)
	escaped := func(name string) string { return strings.ReplaceAll(url.QueryEscape(value(name)), "+", "%20") }
	body, kind, err := w.body(value)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, w.Method, w.URL.Expand(escaped), body)
	if err != nil {
		return nil, errors.New("its URL can't be used") // the error would show it, secrets and all
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("User-Agent", "pawl")
	for name, text := range w.Headers {
		req.Header.Set(name, text.Expand(value))
	}
	req.Host = req.Header.Get("Host") // empty: the URL's
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Fencing-Token", strconv.FormatInt(run.Token().Seq, 10))
	req.Header.Set("Pawl-Lock", headerText(run.Token().Lock))
	return req, nil
}

// headerText is a lock's name as a header can carry it: what is not printable ASCII is percent-encoded, and so is %.
func headerText(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (w httpWork) body(value func(string) string) (body io.Reader, kind string, err error) {
	switch {
	case w.Body.JSON != nil:
		b, err := json.Marshal(expand(w.Body.JSON, value))
		if err != nil {
			return nil, "", fmt.Errorf("its body is no JSON: %w", err)
		}
		return bytes.NewReader(b), "application/json", nil
	case w.Body.Text != nil:
		return strings.NewReader(w.Body.Text.Expand(value)), "text/plain; charset=utf-8", nil
	}
	return http.NoBody, "", nil
}

// mostRedirects is how many redirects are followed.
const mostRedirects = 5

var errElsewhere = errors.New("the answer points elsewhere, which is not followed")

// sameHost follows redirects to the same scheme and host only, and none that would change the method except a 303.
func sameHost(req *http.Request, via []*http.Request) error {
	from := via[len(via)-1]
	switch {
	case req.URL.Scheme != from.URL.Scheme || !strings.EqualFold(req.URL.Host, from.URL.Host):
		return fmt.Errorf("%w: to %s://%s", errElsewhere, req.URL.Scheme, req.URL.Host)
	case req.Method != from.Method && req.Response.StatusCode != http.StatusSeeOther:
		return fmt.Errorf("%w: a %d would make a %s of a %s; write the new URL", errElsewhere, req.Response.StatusCode, req.Method, from.Method)
	case len(via) > mostRedirects:
		return fmt.Errorf("%w: after %d times", errElsewhere, mostRedirects)
	}
	return nil
}

// plain is an error without the URL, which may hold a secret.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// failed is a failure that no other run would mend.
func (w httpWork) failed(err error) error {
	return fmt.Errorf("%w: %s: %w", jobs.ErrNoRetry, w.Method, plain(err))
}

// unconnected: nothing was sent.
func (w httpWork) unconnected(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: not sent: %w", w.Method, context.Cause(ctx))
	case slices.Contains(w.RetryOn, RetryConnect):
		return fmt.Errorf("%s: not sent: %w", w.Method, plain(err))
	}
	return w.failed(fmt.Errorf("not sent: %w", plain(err)))
}

// unanswered: it was sent, and what has become of it isn't known.
func (w httpWork) unanswered(ctx context.Context, err error) error {
	err = plain(err)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	err = fmt.Errorf("%s: sent, no answer: %w", w.Method, err)
	switch w.OnTimeout {
	case TimeoutRetry:
		return err
	case TimeoutError:
		return fmt.Errorf("%w: %w", jobs.ErrNoRetry, err)
	}
	return fmt.Errorf("%w: %w", jobs.ErrUncertain, err)
}
