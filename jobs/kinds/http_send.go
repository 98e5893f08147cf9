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
	want    any
	probing *probing // nil: nobody is asked
	client  http.Client
}

// verdict is the failure of a request: what it means for the run, and for the effect, of which nil means that nobody knows.
type verdict struct{ run, effect error }

func (v *verdict) Error() string { return v.run.Error() }

func (v *verdict) Unwrap() []error { return []error{v.run, v.effect} }

// run sends the request and says what has become of it.
func (w httpWork) run(ctx context.Context, run *jobs.Run, rec *recorder) error {
	if !w.safe() {
		return w.effect(ctx, run, rec)
	}
	key, err := run.EffectKey(ctx)
	if err != nil {
		return err
	}
	_, err = w.send(ctx, run, key, rec)
	switch v := (*verdict)(nil); {
	case !errors.As(err, &v):
		return err
	case v.effect == nil && w.OnTimeout == TimeoutUncertain:
		return fmt.Errorf("%w: %w", jobs.ErrUncertain, v.run)
	case errors.Is(v.effect, jobs.ErrFailed):
		w.spend(ctx, run)
	}
	return err
}

// spend lets a later try by a person have a key of its own, or it would get the same answer again.
func (w httpWork) spend(ctx context.Context, run *jobs.Run) {
	if err := run.SpendKey(ctx); err != nil {
		run.Logger().WarnContext(ctx, "refusal not noted: a later try has the same idempotency key", "error", err)
	}
}

// send sends the request once. Its error is a [*verdict].
func (w httpWork) send(ctx context.Context, run *jobs.Run, key string, rec *recorder) (*answered, error) {
	req, err := w.request(ctx, run, key)
	if err != nil {
		return nil, &verdict{fmt.Errorf("%w: %w", jobs.ErrNoRetry, err), jobs.ErrNotSent}
	}
	sent := new(atomic.Bool)
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}
	res, err := w.client.Do(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if res != nil {
		defer func() { _ = res.Body.Close() }()
	}
	switch {
	case errors.Is(err, errElsewhere):
		return nil, &verdict{w.failed(err), jobs.ErrAgain}
	case err != nil && sent.Load():
		return nil, &verdict{w.unanswered(ctx, err), nil}
	case err != nil:
		return nil, &verdict{w.unconnected(ctx, err), jobs.ErrNotSent}
	}
	return w.judge(ctx, res, rec)
}

func (w httpWork) request(ctx context.Context, run *jobs.Run, key string) (*http.Request, error) {
	value := values(run)
	body, kind, err := w.body(value)
	if err != nil {
		return nil, err
	}
	req, err := ask(ctx, w.Method, w.URL, body, kind, w.Headers, value)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Fencing-Token", strconv.FormatInt(run.Token().Seq, 10))
	req.Header.Set("Pawl-Lock", headerText(run.Token().Lock))
	return req, nil
}

// ask is a request with the values of its templates, which its URL has escaped.
func ask(ctx context.Context, method string, to Text, body io.Reader, kind string, headers map[string]Text, value func(string) string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, to.Expand(escaped(value)), body)
	if err != nil {
		return nil, errors.New("its URL can't be used") // the error would show it, secrets and all
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("User-Agent", "pawl")
	for name, text := range headers {
		req.Header.Set(name, text.Expand(value))
	}
	req.Host = req.Header.Get("Host") // empty: the URL's
	return req, nil
}

// escaped are values as a URL can hold them.
func escaped(value func(string) string) func(string) string {
	return func(name string) string { return strings.ReplaceAll(url.QueryEscape(value(name)), "+", "%20") }
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
	if w.OnTimeout == TimeoutError && w.Probe == nil {
		return fmt.Errorf("%w: %w", jobs.ErrNoRetry, err)
	}
	return err
}
