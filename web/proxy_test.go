package web_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/lockrepo/approvals"
	lockkeys "pawl/lockrepo/keys"
	"pawl/web"
)

func TestAProxysHeaderIsBelievedOnlyFromItsNetworks(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	var log bytes.Buffer
	at := func(network string) func(header ...string) reply {
		store := lockkeys.New(pool)
		srv := on(t, pool, func(c *web.Config) {
			c.Keys, c.Acts, c.Approvals = store, web.NewActs(jobs.NewOperator(pool), approvals.New(pool, nil), store), approvals.New(pool, nil)
			c.Proxy = &web.Proxy{
				Header: "X-Forwarded-User", Networks: []netip.Prefix{netip.MustParsePrefix(network)}, Operators: []string{"ann"}, Approvers: []string{"bob"},
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
			}
		})
		return func(header ...string) reply { return send(t, http.MethodGet, srv.URL+"/ui/keys", header...) }
	}
	near, far := at("127.0.0.0/8"), at("10.0.0.0/8")
	for what, c := range map[string]struct {
		got  reply
		want int
	}{
		"an operator":            {near("X-Forwarded-User", "ann"), http.StatusOK},
		"a reader":               {near("X-Forwarded-User", "bob"), http.StatusForbidden},
		"nobody":                 {near(), http.StatusSeeOther},
		"an empty name":          {near("X-Forwarded-User", ""), http.StatusSeeOther},
		"a name that is no text": {near("X-Forwarded-User", "a\tb"), http.StatusBadRequest},
		"from elsewhere":         {far("X-Forwarded-User", "ann"), http.StatusSeeOther},
	} {
		if c.got.status != c.want {
			t.Errorf("%s: %d, want %d", what, c.got.status, c.want)
		}
	}
	if !bytes.Contains(log.Bytes(), []byte("proxy header from elsewhere ignored")) || bytes.Count(log.Bytes(), []byte("\n")) != 1 {
		t.Errorf("the log says %s", log.String())
	}
}

func TestAProxyThatCantBeUsedIsRefused(t *testing.T) {
	t.Parallel()
	some := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, p := range []web.Proxy{
		{Networks: some}, {Header: "Cookie", Networks: some}, {Header: "X User", Networks: some}, {Header: "X-User"}, {Header: "X-User", Networks: some, Role: "approver"},
	} {
		if err := p.Check(); err == nil {
			t.Errorf("%+v is taken", p)
		}
	}
	if err := (&web.Proxy{Header: "X-Forwarded-User", Networks: some, Role: lockkeys.Operator}).Check(); err != nil {
		t.Error(err)
	}
}

func TestThePagesWarnUntilTheFirstKeyIsMade(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	store := lockkeys.New(pool)
	srv := on(t, pool, func(c *web.Config) { c.Keys, c.Insecure = store, true })
	const warning = "No sign-in. As long as no key is made"
	if got := send(t, http.MethodGet, srv.URL+"/ui/locks"); !strings.Contains(got.body, warning) {
		t.Errorf("no warning: %s", got.body)
	}
	bearer, _, err := store.Create(t.Context(), lockkeys.Key{Name: "r", Role: lockkeys.Reader, CreatedBy: "test"})
	if err != nil {
		t.Fatal(err)
	}
	got := send(t, http.MethodGet, srv.URL+"/ui/locks", "Cookie", "pawl_key="+bearer)
	if got.status != http.StatusOK || strings.Contains(got.body, warning) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A directory that doesn't tell ann from ANN signs one person in under both names.
func TestOnePersonUnderTwoSpellingsCannotApproveTheirOwnRequest(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	store := lockkeys.New(pool)
	asked := approvals.New(pool, nil)
	srv := on(t, pool, func(c *web.Config) {
		c.Keys, c.Acts, c.Approvals = store, web.NewActs(jobs.NewOperator(pool), asked, store), asked
		c.Proxy = &web.Proxy{
			Header: "X-Forwarded-User", Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Role: "operator", Approvers: []string{"ann", "ANN", "ａｎｎ", "bob", "ann\u200b", "josé"},
		}
	})
	if _, err := pool.Exec(t.Context(), `insert into pawl.locks (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
		values ('x', 1795969942676573, 1, gen_random_uuid(), 'w', '1 h', now(), now(), now() + interval '1 h')`); err != nil {
		t.Fatal(err)
	}
	post := func(who, path string, form url.Values, header ...string) reply {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("X-Forwarded-User", who)
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Add(header[i], header[i+1])
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return reply{status: res.StatusCode, header: res.Header}
	}
	ask := func(who string) string {
		got := post(who, "/ui/locks/x/release", url.Values{"token": {"1795969942676573"}, "reason": {"it hangs, pager"}})
		if got.status != http.StatusSeeOther {
			t.Fatalf("asking as %q: %d", who, got.status)
		}
		return got.header.Get("Location")
	}
	yes := url.Values{"decision": {"approve"}}
	for who, others := range map[string][]string{"ann": {"ANN", "Ann", " ann ", "ａｎｎ", "ann\u200b", "\u00adann"}, "jose\u0301": {"josé"}} {
		path := ask(who)
		for _, other := range others {
			if got := post(other, path, yes); got.status != http.StatusForbidden {
				t.Errorf("%q approves what %q has asked for: %d", other, who, got.status)
			}
		}
		if got := post(who, path, yes, "X-Forwarded-User", "bob"); got.status != http.StatusBadRequest {
			t.Errorf("two names at once: %d", got.status)
		}
		if got := post("", path, yes, "X-Forwarded-For", "127.0.0.1", "X_Forwarded_User", "bob", "X-Remote-User", "bob"); got.status == http.StatusSeeOther {
			t.Error("other headers are believed")
		}
	}
	path := ask("Ann")
	if got := post("bob", path, yes); got.status != http.StatusSeeOther {
		t.Errorf("bob: %d", got.status)
	}
}
