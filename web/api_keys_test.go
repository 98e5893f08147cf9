package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pawl/lockrepo"
	lockkeys "pawl/lockrepo/keys"
	"pawl/web"
)

// as is the header that shows a key.
func as(bearer string) []string { return []string{"Authorization", "Bearer " + bearer} }

// concrete is a request that a route takes: a path, a body.
func concrete(r web.APIRoute) (path, body string) {
	path = strings.NewReplacer("{resource}", "payments%2Fx", "{target}", "account:42", "{slug}", "not-found", "{name}", "sub/report.csv").Replace(r.Pattern)
	switch {
	case strings.HasSuffix(r.Pattern, "/check"):
		return path, `{"lock":"payments/x","fencing_token":1}`
	case r.Method == http.MethodPost:
		return path, alice
	case r.Method == http.MethodDelete:
		return path, `{"owner":"alice"}`
	}
	return path, ""
}

// Every role at every route, from the route table itself.
func TestARoleReachesWhatTheTableSaysAndNothingElse(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	ranks := []string{"", lockkeys.Reader, lockkeys.Worker, lockkeys.Operator}
	bearers := map[string]string{}
	for _, role := range ranks[1:] {
		bearers[role] = a.key(t, lockkeys.Key{Name: role, Role: role})
	}
	asked := 0
	for _, route := range web.APIRoutes() {
		path, body := concrete(route)
		for rank, role := range ranks {
			methods := []string{route.Method}
			if route.Method == http.MethodGet {
				methods = append(methods, http.MethodHead)
			}
			for _, method := range methods {
				header := []string(nil)
				if role != "" {
					header = as(bearers[role])
				}
				got := a.ask(t, method, path, body, header...)
				may := rank >= slices.Index(ranks, route.Role)
				refused := got.status == http.StatusUnauthorized || got.status == http.StatusForbidden && strings.Contains(got.body, "/problems/forbidden")
				if method == http.MethodHead {
					refused = got.status == http.StatusUnauthorized || got.status == http.StatusForbidden
				}
				if refused == may {
					t.Errorf("%q at %s %s = %d %s, want it let in: %t", role, method, path, got.status, got.body, may)
				}
				if role == "" && !may && got.header.Get("WWW-Authenticate") != `Bearer realm="pawl"` {
					t.Errorf("WWW-Authenticate = %q", got.header.Get("WWW-Authenticate"))
				}
				asked++
			}
		}
	}
	if asked < 60 {
		t.Errorf("%d requests, want more: is the table whole?", asked)
	}
}

func TestTheWorkerTakesAndGivesBackAndTheReaderLooks(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	worker, reader := as(a.key(t, lockkeys.Key{Name: "w", Role: lockkeys.Worker})), as(a.key(t, lockkeys.Key{Name: "r", Role: lockkeys.Reader}))
	a.take(t, "x", alice, worker...)
	a.ask(t, http.MethodPost, "/locks/x", bob, reader...).is(t, http.StatusForbidden, "forbidden")
	a.ask(t, http.MethodDelete, "/locks/x", `{"owner":"alice"}`, reader...).is(t, http.StatusForbidden, "forbidden")
	a.ask(t, http.MethodGet, "/locks/x", "", reader...).is(t, http.StatusOK, "")
	a.ask(t, http.MethodPost, "/locks/x/renew", alice, worker...).is(t, http.StatusOK, "")
	a.ask(t, http.MethodDelete, "/locks/x", `{"owner":"alice"}`, worker...).is(t, http.StatusNoContent, "")
}

// The right owner under another key is another caller.
func TestTheSameOwnerUnderAnotherKeyIsAnotherCaller(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	first, second := as(a.key(t, lockkeys.Key{Name: "1", Role: lockkeys.Worker})), as(a.key(t, lockkeys.Key{Name: "2", Role: lockkeys.Operator}))
	token := a.take(t, "x", alice, first...)
	if got := a.take(t, "x", alice, second...); got != 0 {
		t.Errorf("the second key was granted %d", got)
	}
	a.ask(t, http.MethodPost, "/locks/x/renew", alice, second...).is(t, http.StatusForbidden, "owner-mismatch")
	a.ask(t, http.MethodDelete, "/locks/x", `{"owner":"alice"}`, second...).is(t, http.StatusForbidden, "owner-mismatch")
	if again := a.take(t, "x", alice, first...); again <= token {
		t.Errorf("the first key was granted %d after %d", again, token)
	}
}

func TestAPrefixBoundsWhatAKeySees(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	all, pay := as(a.key(t, lockkeys.Key{Name: "all", Role: lockkeys.Operator})), as(a.key(t, lockkeys.Key{Name: "pay", Role: lockkeys.Worker, Prefix: "payments/"}))
	for _, name := range []string{"payments%2Fa", "payments%2Fb", "payment", "reports%2Fc"} {
		a.take(t, name, alice, all...)
	}
	for _, name := range []string{"payment", "reports%2Fc", "Payments%2Fa", "x%2Fpayments%2F", "payments%2e%2e%2f"} {
		for _, route := range web.APIRoutes() {
			if !strings.Contains(route.Pattern, "{resource}") {
				continue
			}
			_, body := concrete(route)
			a.ask(t, route.Method, strings.Replace(route.Pattern, "{resource}", name, 1), body, pay...).is(t, http.StatusForbidden, "forbidden")
		}
	}
	refused := a.ask(t, http.MethodPost, "/fences/t/check", `{"lock":"reports/c","fencing_token":1}`, pay...)
	refused.is(t, http.StatusForbidden, "forbidden")
	refused.has(t, `names begin with \"payments/\"`)
	a.ask(t, http.MethodPost, "/fences/t/check", `{"lock":"payments/c","fencing_token":1}`, pay...).is(t, http.StatusOK, "")
	a.ask(t, http.MethodGet, "/locks/payments%2Fa", "", pay...).is(t, http.StatusOK, "")
	for query, want := range map[string][]string{
		"": {"payments/a", "payments/b"}, "?prefix=pay": {"payments/a", "payments/b"}, "?prefix=payments/b": {"payments/b"}, "?prefix=reports/": nil, "?prefix=payments0": nil,
	} {
		var names []string
		for _, l := range a.list(t, "/locks"+query, pay...).Locks {
			names = append(names, l.Resource)
		}
		if !slices.Equal(names, want) {
			t.Errorf("list %q = %v, want %v", query, names, want)
		}
	}
	// The token of a lock that it doesn't reach stands in no answer.
	for lock, last := range map[string]string{"payments/a": `"last_token":77`, "reports/c": `"last_token":null`} {
		if _, err := a.pool.Exec(t.Context(), `insert into pawl.fences values ('account:42', $1, 77) on conflict (target) do update set lock = $1`, lock); err != nil {
			t.Fatal(err)
		}
		for _, token := range []string{"1", "76"} {
			got := a.ask(t, http.MethodPost, "/fences/account:42/check", `{"lock":"payments/a","fencing_token":`+token+`}`, pay...)
			got.is(t, http.StatusConflict, "stale-token")
			got.has(t, last)
		}
	}
	// These show every lock.
	a.ask(t, http.MethodGet, "/api/overview", "", pay...).is(t, http.StatusForbidden, "forbidden")
	for _, page := range []string{"/", "/ui/locks", "/ui/locks/payments%2Fa"} {
		got := a.ask(t, http.MethodGet, page, "", pay...)
		if got.has(t, "this key reaches only those under its prefix"); got.status != http.StatusForbidden {
			t.Errorf("%s = %d, want 403", page, got.status)
		}
	}
}

func TestARevokedKeyIsRefusedWithinASecondOrSo(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	bearer := as(a.key(t, lockkeys.Key{Name: "w", Role: lockkeys.Worker}))
	a.take(t, "x", alice, bearer...)
	if _, err := a.keys.Revoke(t.Context(), "w", "test"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	eventually(t, "the revoked key is refused", func() bool {
		return a.ask(t, http.MethodGet, "/locks/x", "", bearer...).status == http.StatusUnauthorized
	})
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("that took %v", took)
	}
	// A database whose only key was revoked doesn't fall open.
	a.ask(t, http.MethodGet, "/locks/x", "").is(t, http.StatusUnauthorized, "unauthorized")
}

func TestAnExpiredKeyIsRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	soon := time.Now().Add(1500 * time.Millisecond)
	bearer := as(a.key(t, lockkeys.Key{Name: "w", Role: lockkeys.Worker, ExpiresAt: &soon}))
	a.take(t, "x", alice, bearer...)
	eventually(t, "the expired key is refused", func() bool {
		return a.ask(t, http.MethodGet, "/locks/x", "", bearer...).status == http.StatusUnauthorized
	})
}

func TestTenWrongKeysCloseAnAddressForWhoIsNotKnown(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	known, fresh := as(a.key(t, lockkeys.Key{Name: "known", Role: lockkeys.Operator})), as(a.key(t, lockkeys.Key{Name: "fresh", Role: lockkeys.Operator}))
	a.ask(t, http.MethodGet, "/locks", "", known...).is(t, http.StatusOK, "")
	for i := range 10 {
		got := a.ask(t, http.MethodGet, "/locks", "", "Authorization", "Bearer pawl_wrong_"+strings.Repeat("x", 40+i))
		got.is(t, http.StatusUnauthorized, "unauthorized")
		if got.header.Get("WWW-Authenticate") != `Bearer realm="pawl", error="invalid_token"` {
			t.Errorf("WWW-Authenticate = %q", got.header.Get("WWW-Authenticate"))
		}
	}
	for _, route := range web.APIRoutes() {
		if route.Role == "" {
			continue
		}
		path, body := concrete(route)
		got := a.ask(t, route.Method, path, body, "Authorization", "Bearer pawl_wrong_again")
		got.is(t, http.StatusTooManyRequests, "rate-limited")
		if wait := got.header.Get("Retry-After"); wait == "" || wait == "0" || len(wait) > 2 {
			t.Errorf("Retry-After = %q, want seconds of a minute", wait)
		}
	}
	a.ask(t, http.MethodGet, "/locks", "", fresh...).is(t, http.StatusTooManyRequests, "rate-limited")
	a.ask(t, http.MethodGet, "/locks", "", known...).is(t, http.StatusOK, "")
	a.ask(t, http.MethodGet, "/locks", "").is(t, http.StatusUnauthorized, "unauthorized")
	a.ask(t, http.MethodGet, "/healthz", "").is(t, http.StatusOK, "")
	a.log.has(t, `msg="web: wrong key"`, "from=127.0.0.1/32")
	if log := a.log.String(); strings.Contains(log, strings.Repeat("x", 40)) || strings.Contains(log, known[1][len("Bearer "):]) {
		t.Error("the log has a secret")
	}
}

func TestOnlyABearerIsAKey(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	bearer := a.key(t, lockkeys.Key{Name: "w", Role: lockkeys.Worker})
	for value, want := range map[string]int{
		"Bearer " + bearer: 200, "bearer " + bearer: 200, "BEARER  " + bearer: 200, bearer: 401, "Basic " + bearer: 401, "Bearer": 401, "Bearer ": 401,
		"Bearer " + bearer + "x": 401, "Bearer " + strings.ToUpper(bearer): 401, "Bearer " + bearer + "," + bearer: 401, "Bearer \x7f": 400,
	} {
		if strings.Contains(value, "\x7f") {
			continue // the client refuses to send it
		}
		if got := a.ask(t, http.MethodGet, "/locks", "", "Authorization", value); got.status != want {
			t.Errorf("%.12q… = %d %s, want %d", value, got.status, got.body, want)
		}
	}
	a.ask(t, http.MethodGet, "/locks", "", "Authorization", "Bearer "+bearer, "Authorization", "Bearer "+bearer).is(t, http.StatusBadRequest, "malformed")
	a.ask(t, http.MethodGet, "/locks?key="+bearer, "").is(t, http.StatusUnauthorized, "unauthorized")
}

// Whether a key is needed can't be asked: nobody is let in, and the page says what is wrong instead of its figures.
func TestWithoutADatabaseNobodyIsLetIn(t *testing.T) {
	t.Parallel()
	a := stopped(t)
	for _, route := range web.APIRoutes() {
		if route.Role == "" {
			continue
		}
		path, body := concrete(route)
		got := a.ask(t, route.Method, path, body)
		got.is(t, http.StatusServiceUnavailable, "unavailable")
		if got.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	got := a.ask(t, http.MethodGet, "/", "")
	if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "The database") || !strings.Contains(got.header.Get("Content-Type"), "text/html") {
		t.Errorf("page = %d %s", got.status, got.body)
	}
}

func TestThePagesNeedAReadersKeyAndLeadToTheSignIn(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.ask(t, http.MethodGet, "/", "").is(t, http.StatusOK, "") // no key was ever made
	bearer := as(a.key(t, lockkeys.Key{Name: "r", Role: lockkeys.Reader}))
	eventually(t, "the key closes the page", func() bool { return a.ask(t, http.MethodGet, "/", "").status == http.StatusSeeOther })
	if at := a.ask(t, http.MethodGet, "/", "").header.Get("Location"); at != "/ui/sign-in?next=%2F" {
		t.Errorf("the page leads to %q", at)
	}
	a.ask(t, http.MethodGet, "/api/overview", "").is(t, http.StatusUnauthorized, "unauthorized")
	a.ask(t, http.MethodGet, "/problems/unauthorized", "").has(t, "A person opens the page, which asks for the key.")
	a.ask(t, http.MethodGet, "/", "", bearer...).is(t, http.StatusOK, "")
	a.ask(t, http.MethodGet, "/api/overview", "", bearer...).is(t, http.StatusOK, "")
	for _, open := range []string{"/healthz", "/readyz", "/openapi.json", "/docs", "/problems/timeout"} {
		a.ask(t, http.MethodGet, open, "").is(t, http.StatusOK, "")
	}
}

// A page of a name that its owner has lead to loopback is same-origin to a browser: nothing else would stop it.
func TestWithoutAKeyOnlyNamesOfThisMachineAreServed(t *testing.T) {
	t.Parallel()
	a, open := newAPI(t, nil), newAPI(t, func(c *web.Config) { c.Insecure = true })
	for _, route := range web.APIRoutes() {
		if route.Role == "" {
			continue
		}
		path, body := concrete(route)
		for host, lets := range map[string]bool{
			"evil.example": false, "evil.example:8399": false, "127.0.0.1.evil.example": false, "localhost.evil.example": false, "x.xlocalhost": false, "": true, "pawl:8399": true,
			"127.0.0.1:1": true, "[::1]:8399": true, "[::1]": true, "10.1.2.3": true, "localhost": true, "LOCALHOST:8399": true, "localhost.": true, "pawl.localhost:1": true,
		} {
			for _, api := range []*lockAPI{a, open} {
				got := api.askAs(t, host, route.Method, path, body)
				if forbidden := strings.Contains(got, "/problems/forbidden"); forbidden == (lets || api == open) {
					t.Errorf("%s %s at %q, insecure %t = %s", route.Method, path, host, api == open, got)
				}
			}
		}
	}
	bearer := a.key(t, lockkeys.Key{Name: "k", Role: lockkeys.Worker})
	eventually(t, "the key lets in by any name", func() bool {
		return strings.HasPrefix(a.askAs(t, "locks.example", http.MethodGet, "/locks", "", "Authorization: Bearer "+bearer), "HTTP/1.1 200")
	})
}

// askAs asks for a host, which the client wouldn't let us leave out.
func (a *lockAPI) askAs(t *testing.T, host, method, path, body string, header ...string) string {
	t.Helper()
	conn := dial(t, a.addr)
	lines := slices.Concat(header, []string{"Host: " + host, "Connection: close", "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body))})
	_, err := io.WriteString(conn, method+" "+path+" HTTP/1.1\r\n"+strings.Join(lines, "\r\n")+"\r\n\r\n"+body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// noKeys is a store of keys that doesn't answer, while the locks' does.
type noKeys struct {
	web.Keys
	inUse bool // whether Any answers
}

func (n noKeys) Any(context.Context) (bool, error) {
	if n.inUse {
		return true, nil
	}
	return false, io.ErrUnexpectedEOF
}

func (noKeys) Check(context.Context, string) (lockkeys.Key, error) {
	return lockkeys.Key{}, io.ErrUnexpectedEOF
}

func TestAKeyThatCantBeCheckedLetsNobodyInAndIsNotAWrongOne(t *testing.T) {
	t.Parallel()
	for _, inUse := range []bool{false, true} {
		a := newAPI(t, func(c *web.Config) { c.Keys = noKeys{inUse: inUse} })
		for range 12 { // were they counted as wrong, the eleventh would be a 429
			for _, route := range web.APIRoutes() {
				if route.Role == "" {
					continue
				}
				path, body := concrete(route)
				got := a.ask(t, route.Method, path, body, as("pawl_any_key")...)
				got.is(t, http.StatusServiceUnavailable, "unavailable")
				got.lacks(t, "acquired")
			}
		}
		if got := a.ask(t, http.MethodGet, "/", "", as("pawl_any_key")...); got.status != http.StatusServiceUnavailable {
			t.Errorf("page = %d, want 503", got.status)
		}
		held, err := a.repo.List(t.Context(), lockrepo.Filter{})
		if err != nil || len(held) != 0 {
			t.Errorf("locks = %v, %v, want none", held, err)
		}
	}
}

// A browser that has kept the page is told too: what it kept says otherwise.
func TestTheWarningOfAnOpenServerEndsWithTheFirstKey(t *testing.T) {
	t.Parallel()
	a, local := newAPI(t, func(c *web.Config) { c.Insecure = true }), newAPI(t, nil)
	const warning, keysOnly = "No sign-in.", "board"
	a.log.has(t, "no sign-in until a key is made")
	was := a.ask(t, http.MethodGet, "/", "")
	was.has(t, warning)
	a.ask(t, http.MethodGet, "/docs", "").has(t, warning)
	bearer := as(a.key(t, lockkeys.Key{Name: "board", Role: lockkeys.Reader}))
	now := a.ask(t, http.MethodGet, "/", "", append(bearer, "If-None-Match", was.header.Get("ETag"))...)
	now.is(t, http.StatusOK, "")
	for path, got := range map[string]string{
		"/": now.body, "/docs": a.ask(t, http.MethodGet, "/docs", "").body, "local /": local.ask(t, http.MethodGet, "/", "").body,
		"local /docs": local.ask(t, http.MethodGet, "/docs", "").body,
	} {
		if strings.Contains(got, warning) {
			t.Errorf("%s says %q", path, warning)
		}
	}
}

// A browser sends its cookie by itself, also with a form of another site: the lock API doesn't know it.
func TestTheCookieOfASignInOpensThePagesOnly(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	bearer := a.key(t, lockkeys.Key{Name: "ann", Role: lockkeys.Operator, CreatedBy: "test"})
	cookie := []string{"Cookie", "pawl_key=" + bearer}
	if page := a.ask(t, http.MethodGet, "/ui/locks", "", cookie...); page.status != http.StatusOK {
		t.Fatalf("the page = %d, want 200", page.status)
	}
	a.ask(t, http.MethodPost, "/locks/x", `{"owner":"a","ttl_seconds":60}`, cookie...).is(t, http.StatusUnauthorized, "unauthorized")
	a.ask(t, http.MethodGet, "/locks", "", cookie...).is(t, http.StatusUnauthorized, "unauthorized")
	a.ask(t, http.MethodGet, "/api/overview", "", cookie...).is(t, http.StatusUnauthorized, "unauthorized")
}
