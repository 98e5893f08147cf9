package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pawl/lockrepo"
	"pawl/web"
)

// bodied are the routes that read a body.
func bodied() (all []web.APIRoute) {
	for _, r := range web.APIRoutes() {
		if r.Method == http.MethodPost || r.Method == http.MethodDelete {
			all = append(all, r)
		}
	}
	return all
}

func TestEveryRouteThatReadsABodyBoundsIt(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for _, route := range bodied() {
		path, body := concrete(route)
		a.ask(t, route.Method, path, body+strings.Repeat(" ", 16<<10)).is(t, http.StatusRequestEntityTooLarge, "too-large")
		whole := a.ask(t, route.Method, path, body+strings.Repeat(" ", 16<<10-len(body)))
		if whole.status == http.StatusRequestEntityTooLarge {
			t.Errorf("%s %s: 16 KiB are too much", route.Method, path)
		}
		// A length that isn't announced is found out.
		chunked, err := http.NewRequestWithContext(t.Context(), route.Method, a.url+path, io.MultiReader(strings.NewReader(body), strings.NewReader(strings.Repeat(" ", 16<<10))))
		if err != nil {
			t.Fatal(err)
		}
		chunked.Header.Set("Content-Type", "application/json")
		exchange(t, chunked).is(t, http.StatusRequestEntityTooLarge, "too-large")
	}
}

func TestEveryRouteThatReadsABodyWantsJSON(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for _, route := range bodied() {
		path, body := concrete(route)
		for _, header := range [][]string{{"Content-Type", "text/plain"}, {"Content-Type", "application/json;charset=latin1"}, {"Content-Encoding", "gzip", "Content-Type", "application/json"}} {
			req, err := http.NewRequestWithContext(t.Context(), route.Method, a.url+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(header); i += 2 {
				req.Header.Set(header[i], header[i+1])
			}
			got := exchange(t, req)
			got.is(t, http.StatusUnsupportedMediaType, "unsupported-media-type")
			if got.header.Get("Accept-Encoding") != "identity" {
				t.Errorf("Accept-Encoding = %q", got.header.Get("Accept-Encoding"))
			}
		}
		a.ask(t, route.Method, path, "{").is(t, http.StatusBadRequest, "malformed")
		a.ask(t, route.Method, path, "{}").is(t, http.StatusUnprocessableEntity, "validation")
	}
	a.ask(t, http.MethodDelete, "/locks/x", "").is(t, http.StatusUnprocessableEntity, "validation")
	a.ask(t, http.MethodDelete, "/locks/x?owner=a", "").is(t, http.StatusNotFound, "not-found")
	a.ask(t, http.MethodDelete, "/locks/x?owner=a&owner=a", "").is(t, http.StatusUnprocessableEntity, "validation")
}

// All faults of path and body at once.
func TestAllFaultsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	got := a.ask(t, http.MethodPost, "/locks/%00", `{"owner":"","ttl_seconds":0,"x":1}`)
	got.is(t, http.StatusUnprocessableEntity, "validation")
	got.has(t, `"pointer":"/resource"`, `"pointer":"/owner"`, `"pointer":"/ttl_seconds"`, `"pointer":"/x"`)
}

// slow sends nothing until it is done.
type slow struct{ done <-chan struct{} }

func (s slow) Read([]byte) (int, error) {
	<-s.done
	return 0, io.EOF
}

func TestASlowBodyIsGivenUpAtEveryRoute(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for _, route := range bodied() {
		t.Run(route.Method+" "+route.Pattern, func(t *testing.T) {
			t.Parallel()
			path, body := concrete(route)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, route.Method, a.url+path, io.MultiReader(strings.NewReader(body[:3]), slow{ctx.Done()}))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			start := time.Now()
			got := exchange(t, req)
			got.is(t, http.StatusRequestTimeout, "timeout")
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("given up after %v", took)
			}
		})
	}
}

func TestLargeHeadersAreRefusedAtEveryRoute(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for _, route := range web.APIRoutes() {
		path, body := concrete(route)
		// A little over 16 KiB: the server itself reads on for a while, the handler doesn't.
		a.ask(t, route.Method, path, body, "X-Big", strings.Repeat("x", 16<<10)).is(t, http.StatusRequestHeaderFieldsTooLarge, "header-too-large")
		if got := a.ask(t, route.Method, path, body, "X-Big", strings.Repeat("x", 15<<10)); got.status == http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("15 KiB are too much at %s", path)
		}
	}
	a.ask(t, http.MethodGet, "/metrics", "").is(t, http.StatusOK, "")
}

func TestTwoValuesOfASingleValuedHeaderAreMalformed(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for _, route := range web.APIRoutes() {
		if route.Role == "" {
			continue
		}
		path, body := concrete(route)
		for _, name := range []string{"Authorization", "If-Match", "Idempotency-Key", "X-Request-Id"} {
			a.ask(t, route.Method, path, body, name, `"1"`, name, `"1"`).is(t, http.StatusBadRequest, "malformed")
		}
	}
}

func TestMethodsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	patterns := map[string][]string{}
	for _, r := range web.APIRoutes() {
		patterns[r.Pattern] = append(patterns[r.Pattern], r.Method)
		if r.Method == http.MethodGet {
			patterns[r.Pattern] = append(patterns[r.Pattern], http.MethodHead)
		}
	}
	for pattern, methods := range patterns {
		slices.Sort(methods)
		allow := strings.Join(methods, ", ")
		path, _ := concrete(web.APIRoute{Pattern: pattern})
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW", "get"} {
			if slices.Contains(methods, method) {
				continue
			}
			got := a.ask(t, method, path, "")
			if got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != allow {
				t.Errorf("%s %s = %d, Allow %q, want 405 and %q", method, path, got.status, got.header.Get("Allow"), allow)
			}
		}
		got := a.ask(t, http.MethodOptions, path, "")
		if got.status != http.StatusNoContent || got.header.Get("Allow") != allow+", OPTIONS" {
			t.Errorf("OPTIONS %s = %d, Allow %q, want 204 and %q", path, got.status, got.header.Get("Allow"), allow+", OPTIONS")
		}
	}
}

// An encoded slash belongs to the name, also beside bytes that should have been encoded, and below a base path.
func TestANameIsReadAsItWasSent(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *web.Config) { c.BasePath = "/p" })
	for sent, name := range map[string]string{
		"zz%2Frenew": "zz/renew", "\xc3\xa9%2Frenew": "é/renew", "%2e%2e": "..", "..%2F..": "../..", "a%252Fb": "a%2Fb", "p+q%20r": "p+q r", "%2F": "/", "a;b=c": "a;b=c",
	} {
		conn := dial(t, a.addr)
		body := alice
		_, err := io.WriteString(conn, "POST /p/locks/"+sent+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: "+
			strconv.Itoa(len(body))+"\r\n\r\n"+body)
		if err != nil {
			t.Fatal(err)
		}
		all := answersOf(t, conn)
		if len(all) != 1 || all[0].status != http.StatusOK || all[0].doc(t).Lock.Resource != name {
			t.Errorf("%q = %v, want the lock %q", sent, all, name)
		}
	}
	for _, path := range []string{"/p/locks/", "/p/locks//", "/p/locks/a/", "/p/locks/a/b", "/p/locks/a//renew", "/p/fences/a", "/p/fences/a/renew", "/p/locks/a/check", "/locks/a", "/p/locks/a/renew/", "/p/fences/"} {
		got := a.ask(t, http.MethodPost, path, alice)
		got.is(t, http.StatusNotFound, "")
		got.isProblem(t, http.StatusNotFound, "/p/problems/not-found")
		got.has(t, `"instance":"`+path+`"`)
	}
}

func TestWithoutALockStoreThereIsNoLockAPI(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *web.Config) { c.API, c.Artifacts = nil, nil })
	for _, path := range []string{"/artifacts/a", "/locks", "/locks/x", "/fences/x/check", "/openapi.json", "/docs"} {
		a.ask(t, http.MethodGet, path, "").is(t, http.StatusNotFound, "not-found")
	}
	srv := httptest.NewServer(web.HealthHandler(web.Config{API: (*lockrepo.Repo)(nil)}))
	defer srv.Close()
	send(t, http.MethodGet, srv.URL+"/locks").isProblem(t, http.StatusNotFound, "/problems/not-found")
}

func TestReadinessIsRefusedWithAProblem(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *web.Config) { c.Ready = func(context.Context) error { return errors.New("no") } })
	a.ask(t, http.MethodGet, "/readyz", "").is(t, http.StatusServiceUnavailable, "unavailable")
	a.ask(t, http.MethodGet, "/problems/none", "").is(t, http.StatusNotFound, "")
}

// Whatever goes wrong between us and the database, it is never a 500, and never an answer about the lock.
func TestAnUnknownErrorIsUnavailableAtEveryRoute(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	if _, err := a.pool.Exec(t.Context(), "drop schema pawl cascade"); err != nil {
		t.Fatal(err)
	}
	for _, route := range web.APIRoutes() {
		if route.Role == "" {
			continue
		}
		path, body := concrete(route)
		a.ask(t, route.Method, path, body).is(t, http.StatusServiceUnavailable, "unavailable")
	}
}
