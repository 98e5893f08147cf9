package kinds

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"pawl/jobs"
)

// What it means that no answer came to a request that was sent.
const (
	TimeoutUncertain = "uncertain" // nobody knows: no other run, a person looks
	TimeoutRetry     = "retry"     // another run sends it again, with the same key
	TimeoutError     = "error"     // it has failed: no other run
)

// RetryConnect in HTTP.RetryOn is that no connection came about: nothing was sent.
const RetryConnect = "connect"

// HTTP is a job that sends one request. URL is required.
//
// A failure that RetryOn doesn't name is final: the period is dead, and what a person may do about it is a question of
// what the receiver has done. A crash repeats the request, with the same key.
type HTTP struct {
	Method      string            // GET, HEAD, POST (default), PUT, PATCH or DELETE
	URL         Text              // http or https; the values of templates are escaped
	Headers     map[string]Text   // besides Idempotency-Key, Fencing-Token and Pawl-Lock
	Body        Body              //
	Expect      Answer            // what must be true of the answer
	RetryOn     []string          // status codes, and RetryConnect; default 429, 502, 503 and connect; empty, not nil: none
	OnTimeout   string            // default TimeoutUncertain
	MaxResponse int64             // bytes; default 256 KiB; a longer answer is a failure
	Transport   http.RoundTripper // default one of its own, which keeps no connections
}

// Body is a request's body. One of its fields is set, or none.
type Body struct {
	JSON any  // what encoding/json makes of any, with Texts in it
	Text Text // sent as it is
}

// Answer is what must be true of an answer.
type Answer struct {
	Status  []int  // default any 2xx
	Pointer string // a JSON pointer to a value of the body; empty: none is looked at
	Equals  any    // what it must be
}

const mostResponse = 64 << 20

// Badge says how its work is fenced.
func (HTTP) Badge() string { return "relies on the receiver" }

// Func returns the job's function, or a [*ConfigError].
func (h HTTP) Func() (jobs.Func, error) {
	h.Method = cmp.Or(h.Method, http.MethodPost)
	h.OnTimeout = cmp.Or(h.OnTimeout, TimeoutUncertain)
	h.MaxResponse = cmp.Or(h.MaxResponse, 256<<10)
	if h.RetryOn == nil {
		h.RetryOn = []string{"429", "502", "503", RetryConnect}
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	if h.Transport == nil {
		h.Transport = newTransport()
	}
	want, err := normal(h.Expect.Equals)
	if err != nil {
		return nil, &ConfigError{"Expect.Equals", h.Expect.Equals, "use a value that JSON has"}
	}
	w := httpWork{HTTP: h, want: want, client: http.Client{Transport: h.Transport, CheckRedirect: sameHost}}
	return func(ctx context.Context, run *jobs.Run) error {
		rec := newRecorder(Capture{Max: h.MaxResponse + 4<<10, Keep: KeepHead}, nil, nil)
		err := w.run(ctx, run, rec)
		keep(ctx, run, rec.output())
		return err
	}, nil
}

func (h HTTP) check() error {
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	bodiless := h.Method == http.MethodGet || h.Method == http.MethodHead
	body := h.Body.JSON != nil || h.Body.Text != nil
	switch {
	case !slices.Contains(methods, h.Method):
		return &ConfigError{"Method", h.Method, "use GET, HEAD, POST, PUT, PATCH or DELETE"}
	case h.URL == nil || !isHTTP(literal(h.URL)):
		return &ConfigError{"URL", "", "give an http or https URL with a host"} // it may hold a secret
	case h.Body.JSON != nil && h.Body.Text != nil, body && bodiless:
		return &ConfigError{"Body", h.Method, "give JSON or Text, and none for GET and HEAD"}
	case !slices.Contains([]string{TimeoutUncertain, TimeoutRetry, TimeoutError}, h.OnTimeout):
		return &ConfigError{"OnTimeout", h.OnTimeout, "use uncertain, retry or error"}
	case h.MaxResponse < 0 || h.MaxResponse > mostResponse:
		return &ConfigError{"MaxResponse", h.MaxResponse, "use 1 to 67108864 bytes, which is 64 MiB"}
	case h.Expect.Pointer != "" && !strings.HasPrefix(h.Expect.Pointer, "/"):
		return &ConfigError{"Expect.Pointer", h.Expect.Pointer, "use a JSON pointer, such as /ok"}
	}
	for _, cause := range h.RetryOn {
		if n, err := strconv.Atoi(cause); cause != RetryConnect && (err != nil || n < 100 || n > 599) {
			return &ConfigError{"RetryOn", cause, "use a status code of 100 to 599, or connect"}
		}
	}
	for name := range h.Headers {
		if slices.Contains([]string{"Idempotency-Key", "Fencing-Token", "Pawl-Lock"}, http.CanonicalHeaderKey(name)) {
			return &ConfigError{"Headers", name, "it is set by pawl: leave it out"}
		}
	}
	return nil
}

func isHTTP(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// newTransport keeps no connections: on one that was kept a request may have been lost without a trace, or be sent
// twice by net/http itself.
func newTransport() http.RoundTripper {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		base = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	own := base.Clone()
	own.DisableKeepAlives = true
	return own
}
