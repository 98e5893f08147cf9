package web_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/netip"
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
