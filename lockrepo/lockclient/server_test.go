package lockclient

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errCut = errors.New("connection cut")

// seen is what the server was asked.
type seen struct {
	at                            time.Time
	method, path, match, key, who string // path as it was sent; who: the Authorization
	owner                         string
	ttl                           time.Duration
}

// server is a pawl server with one lock, in fake time.
type server struct {
	mu    sync.Mutex
	asked []seen

	owner        string
	token        int64
	expires      time.Time
	history      []map[string]any // the newest first
	granted      map[string]int64 // by idempotency key
	skew, travel time.Duration    // of its clock; of every reply
	maxHold      time.Duration    // 0: no limit
	acquired     time.Time
	term         time.Duration

	// hook may answer instead; n counts from 1. after runs once the request has
	// been carried out, and may lose the reply.
	hook  func(n int, r *http.Request) (*http.Response, error)
	after func(n int, r *http.Request) error
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	var body struct {
		Owner string `json:"owner"`
		TTL   int64  `json:"ttl_seconds"`
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(b)) // for a hook
	if err := json.Unmarshal(b, &body); err != nil && len(b) > 0 {
		return nil, err
	}
	s.mu.Lock()
	s.asked = append(s.asked, seen{
		time.Now(), r.Method, r.URL.EscapedPath(), r.Header.Get("If-Match"), r.Header.Get("Idempotency-Key"),
		r.Header.Get("Authorization"), body.Owner, time.Duration(body.TTL) * time.Second,
	})
	n, hook := len(s.asked), s.hook
	s.mu.Unlock()
	if hook != nil {
		if resp, err := hook(n, r); resp != nil || err != nil {
			return resp, err
		}
	}
	s.mu.Lock()
	resp, after := s.serve(r, body.Owner, time.Duration(body.TTL)*time.Second), s.after
	s.mu.Unlock()
	if after != nil {
		if err := after(n, r); err != nil {
			return nil, err
		}
	}
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-time.After(s.travel):
		return resp, nil
	}
}

func (s *server) serve(r *http.Request, owner string, ttl time.Duration) *http.Response {
	live := s.owner != "" && time.Now().Before(s.expires)
	token := fmt.Sprintf("%q", fmt.Sprint(s.token))
	switch match := r.Header.Get("If-Match"); {
	case strings.HasSuffix(r.URL.Path, "/history"):
		return reply(200, map[string]any{"tenures": s.history})
	case r.Method == http.MethodDelete && (!live || owner != s.owner):
		return refuse(cmp.Or(map[bool]int{live: 403}[true], 404))
	case strings.HasSuffix(r.URL.Path, "/renew") && (!live || owner != s.owner):
		return refuse(409)
	case match != "" && match != token && match != "*":
		return refuse(412)
	case r.Method == http.MethodDelete:
		s.end("released", nil)
		return reply(204, nil)
	case strings.HasSuffix(r.URL.Path, "/renew"):
		s.last(ttl)
	case live && s.granted[r.Header.Get("Idempotency-Key")] == s.token:
	case live && s.owner != owner:
		resp := reply(200, map[string]any{"acquired": false, "resource": "x", "expires_at": s.expires})
		resp.Header.Set("Retry-After", "1")
		return resp
	default:
		s.take(owner, ttl)
		s.granted[r.Header.Get("Idempotency-Key")] = s.token
	}
	return reply(200, map[string]any{"acquired": true, "lock": map[string]any{
		"resource": "x", "owner": s.owner, "fencing_token": s.token, "ttl_seconds": s.term.Seconds(), "expires_at": s.expires, "renewed_at": time.Now().Add(s.skew),
	}})
}

// take grants the lock, whoever has it.
func (s *server) take(owner string, ttl time.Duration) {
	next := s.token + 1
	if s.owner != "" {
		s.end("expired", &next)
	}
	s.owner, s.token, s.acquired = owner, next, time.Now()
	s.last(ttl)
}

// last makes the lease end after ttl, or at the longest hold.
func (s *server) last(ttl time.Duration) {
	if s.term = ttl; s.maxHold > 0 {
		s.term = min(ttl, time.Until(s.acquired.Add(s.maxHold)))
	}
	s.expires = time.Now().Add(s.term)
}

func (s *server) end(how string, successor *int64) {
	s.history = append([]map[string]any{{"fencing_token": s.token, "how": how, "successor": successor}}, s.history...)
	s.owner = ""
}

func (s *server) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// now is who holds the lock, and until when.
func (s *server) now() (owner string, expires time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owner, s.expires
}

// calls are those with the method that ends in suffix.
func (s *server) calls(method, suffix string) (out []seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.asked {
		if q.method == method && strings.HasSuffix(q.path, suffix) {
			out = append(out, q)
		}
	}
	return out
}

func reply(status int, body any) *http.Response {
	b, _ := json.Marshal(body)
	kind := "application/json"
	if status >= 400 {
		kind = "application/problem+json"
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(b))}
}

func refuse(status int) *http.Response {
	slug := map[int]string{401: "unauthorized", 403: "owner-mismatch", 404: "not-found", 409: "lease-lost", 412: "precondition-failed", 503: "unavailable"}[status]
	return reply(status, map[string]any{"type": "/pawl/problems/" + slug, "status": status, "detail": "Ask again."})
}

// bubble runs f in fake time with a client of s.
func bubble(t *testing.T, s *server, cfg Config, f func(t *testing.T, c *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.granted = make(map[string]int64)
		cfg.Server, cfg.Holder, cfg.HTTP = cmp.Or(cfg.Server, "http://locks.test/pawl"), "a", &http.Client{Transport: s}
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		f(t, c)
	})
}

// after lets fake time go by.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func mustAcquire(t *testing.T, c *Client, ttl time.Duration) Lease {
	t.Helper()
	l, err := c.Acquire(t.Context(), "x", ttl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
