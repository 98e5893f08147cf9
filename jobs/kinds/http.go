package kinds

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"pawl/jobs"
)

// What it means that no answer came to a request that was sent.
const (
	TimeoutUncertain = "uncertain" // nobody knows: no other run until a person has decided, see jobs.DecideEffect
	TimeoutRetry     = "retry"     // another run sends it again, with the same key
	TimeoutError     = "error"     // no other run of its own accord; a retry sends it again, with the same key
)

// RetryConnect in HTTP.RetryOn is that no connection came about: nothing was sent.
const RetryConnect = "connect"

// HTTP is a job that sends one request. URL is required.
//
// The request is its period's only effect ([jobs.Run.EffectOf]): the journal has method, URL and body as they were asked for,
// without headers and secrets, before it is sent, and the answer after it. What is on record as done is not sent again. GET and
// HEAD change nothing at the receiver: they aren't in the journal.
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
	OnTimeout   string            // default TimeoutUncertain; without a Probe, which is what to do then
	KeyLifetime time.Duration     // for which the receiver surely remembers a key; default 24h; jobs.NoKeys
	ValidFor    time.Duration     // from the first try on; after it nothing is sent; default no limit
	Probe       *Probe            // asks the receiver what has become of it, when nobody knows; nil: there is no such way
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

// Probe asks a receiver by key what has become of a request. URL is required. What the answer says neither way, nobody knows.
type Probe struct {
	Method  string          // GET (default) or HEAD
	URL     Text            // like [HTTP.URL]; effect.key is the request's idempotency key
	Headers map[string]Text // with effect.key too
	Expect  Answer          // it has happened
	Absent  []int           // status codes that say that the receiver has never got it; default 404
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
	w := httpWork{HTTP: h, client: http.Client{Transport: h.Transport, CheckRedirect: sameHost}}
	var err error
	if w.want, err = h.Expect.wanted("Expect"); err != nil {
		return nil, err
	}
	if h.Probe != nil {
		if w.probing, err = h.Probe.ready(); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, run *jobs.Run) error {
		rec := newRecorder(Capture{Max: h.MaxResponse + 4<<10, Keep: KeepHead}, nil, nil)
		err := w.run(ctx, run, rec)
		keep(ctx, run, rec.output())
		return err
	}, nil
}

func (h HTTP) check() error {
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	bodiless := h.safe()
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
	case h.safe() && (h.KeyLifetime != 0 || h.ValidFor != 0 || h.Probe != nil):
		return &ConfigError{"Method", h.Method, "leave out KeyLifetime, ValidFor and Probe: it changes nothing at the receiver"}
	case h.KeyLifetime < 0 && h.KeyLifetime != jobs.NoKeys:
		return &ConfigError{"KeyLifetime", h.KeyLifetime, "use a positive duration, or jobs.NoKeys"}
	case h.KeyLifetime == jobs.NoKeys && h.Probe == nil && h.OnTimeout == TimeoutRetry:
		return &ConfigError{"OnTimeout", h.OnTimeout, "use uncertain: a receiver that keeps no keys would do it twice"}
	case h.ValidFor < 0:
		return &ConfigError{"ValidFor", h.ValidFor, "use a positive duration"}
	case h.MaxResponse < 0 || h.MaxResponse > mostResponse:
		return &ConfigError{"MaxResponse", h.MaxResponse, "use 1 to 67108864 bytes, which is 64 MiB"}
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

// safe reports whether it changes nothing at the receiver.
func (h HTTP) safe() bool { return h.Method == http.MethodGet || h.Method == http.MethodHead }

// wanted is the value that is expected, as decode gives it. of names the answer.
func (a Answer) wanted(of string) (any, error) {
	if a.Pointer != "" && !strings.HasPrefix(a.Pointer, "/") {
		return nil, &ConfigError{of + ".Pointer", a.Pointer, "use a JSON pointer, such as /ok"}
	}
	want, err := normal(a.Equals)
	if err != nil {
		return nil, &ConfigError{of + ".Equals", a.Equals, "use a value that JSON has"}
	}
	return want, nil
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
