package ui_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pawl/lockrepo/keys"
	"pawl/web"
	"pawl/web/ui"
)

// free are the routes that change nothing but the reader's own cookies.
var free = []string{"/ui/sign-in", "/ui/sign-out", "/ui/prefs/theme", "/ui/prefs/zone"}

// addressOf is a route's address with names in it that exist in days.
func addressOf(pattern string) string {
	key := map[bool]string{true: "2026-01-02", false: "2026-01-01"}[strings.HasSuffix(pattern, "/retry")]
	return strings.NewReplacer("{name}", "ledger", "{job}", "settle", "{key}", key, "{id}", "1", "{version}", "1", "{hash}", "x", "{file}", "app.css", "{run}", "1").Replace(pattern)
}

// everything is the content of all that an act could change.
const everything = `
select md5(concat((select string_agg(l::text, ',' order by name) from pawl.locks l), (select string_agg(p::text, ',' order by job, key, revision) from pawl.periods p),
       (select string_agg(s::text, ',' order by job) from pawl.schedules s), (select string_agg(a::text, ',' order by id) from pawl.approvals a),
       (select string_agg(a::text, ',' order by id) from pawl.audit a), (select string_agg((k.id, k.revoked_at)::text, ',' order by id) from pawl.keys k)))`

// acts are the routes that change something, by the table that the pages themselves go by.
func acts() []ui.Route {
	return slices.DeleteFunc(ui.Routes(), func(r ui.Route) bool {
		return !r.Acts && (r.Method == http.MethodGet || slices.Contains(free, r.Pattern))
	})
}

func TestEveryRouteThatWritesIsAnActForOperators(t *testing.T) {
	t.Parallel()
	for _, r := range acts() {
		if !r.Acts || r.Role != keys.Operator && !r.Decides {
			t.Errorf("%s %s: acts %v, role %q", r.Method, r.Pattern, r.Acts, r.Role)
		}
	}
	if len(acts()) < 25 {
		t.Errorf("%d routes act only", len(acts()))
	}
}

func TestAReaderAndAReadOnlyPageChangeNothing(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		who    string
		change func(*web.Config)
	}{
		"a reader":  {"eve", nil},
		"read only": {"bob", func(c *web.Config) { c.ReadOnly = true }},
		"no acts":   {"bob", func(c *web.Config) { c.Acts = nil }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := staff(t, days, c.change)
			s.held(t, "worker-1")
			if _, err := s.pool.Exec(t.Context(), `select pawl.request_release('ledger', (select token from pawl.locks where name = 'ledger'), 'worker hangs, pager', false, 'x', 'x', true)`); err != nil {
				t.Fatal(err)
			}
			before := one(t, s.pool, everything)
			form := url.Values{
				"reason": {why}, "token": {one(t, s.pool, `select token::text from pawl.locks where name = 'ledger'`)}, "revision": {"1"}, "state": {"complete"},
				"decision": {"approve"}, "note": {"yes"}, "owe": {"none"}, "job": {"settle"}, "owed": {"1"}, "from": {"2025-12-01"}, "to": {"2025-12-01"}, "name": {"n"}, "role": {"reader"},
			}
			for _, r := range acts() {
				path := addressOf(r.Pattern)
				got := s.get(t, c.who, path)
				if r.Method == http.MethodPost {
					got = s.post(t, c.who, path, form)
				}
				if got.status != http.StatusForbidden {
					t.Errorf("%s %s = %d, want 403", r.Method, path, got.status)
				}
				if r.Decides && c.who == "eve" { // before the database would say so
					got.has(t, "You are a reader who may not approve")
				}
			}
			if after := one(t, s.pool, everything); after != before {
				t.Error("something has changed")
			}
			for _, r := range ui.Routes() {
				if r.Method != http.MethodGet || r.Role != keys.Reader || r.Acts {
					continue
				}
				got := s.get(t, c.who, addressOf(r.Pattern))
				for _, f := range regexp.MustCompile(`<form[^>]*method="post"[^>]*action="([^"]*)"`).FindAllStringSubmatch(got.body, -1) {
					if !slices.Contains(free, f[1]) {
						t.Errorf("%s has a form that sends to %s", r.Pattern, f[1])
					}
				}
				if dots := regexp.MustCompile(`>[^<]*…</a>`).FindString(got.body); dots != "" {
					t.Errorf("%s leads to an act: %s", r.Pattern, dots)
				}
			}
		})
	}
}

// The negative of the test above: with the rights, the same requests change something.
func TestAnOperatorMayWhatAReaderMayNot(t *testing.T) {
	t.Parallel()
	s := staff(t, days, nil)
	before := one(t, s.pool, everything)
	for _, who := range []string{"eve", ""} {
		if got := s.post(t, who, "/ui/jobs/settle/pause", url.Values{"reason": {why}}); got.status != http.StatusForbidden && got.status != http.StatusUnauthorized {
			t.Errorf("as %q: %d", who, got.status)
		}
	}
	s.post(t, "ann", "/ui/jobs/settle/pause", url.Values{"reason": {why}}).is(t, http.StatusSeeOther)
	if one(t, s.pool, everything) == before {
		t.Error("a pause changes nothing that is compared")
	}
}

func TestARequestFromAnotherSiteChangesNothing(t *testing.T) {
	t.Parallel()
	cross := http.NewCrossOriginProtection()
	if err := cross.AddTrustedOrigin("https://pawl.example.com"); err != nil {
		t.Fatal(err)
	}
	s := staff(t, days, func(c *web.Config) { c.Cross = cross })
	host := strings.TrimPrefix(s.URL, "http://")
	n := 0
	for what, c := range map[string]struct {
		header []string
		want   int
	}{
		"another site":                      {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, http.StatusForbidden},
		"the same site":                     {[]string{"Sec-Fetch-Site", "same-origin", "Origin", s.URL}, http.StatusSeeOther},
		"an old browser":                    {[]string{"Origin", "http://" + host}, http.StatusSeeOther},
		"a proxy that changes the name":     {[]string{"Origin", "http://public.example"}, http.StatusForbidden},
		"a proxy whose origin is trusted":   {[]string{"Origin", "https://pawl.example.com", "Sec-Fetch-Site", "same-site"}, http.StatusSeeOther},
		"a program":                         {nil, http.StatusSeeOther},
		"another site, to whoever looks on": {[]string{"Sec-Fetch-Site", "same-site", "Origin", "http://" + host + ".example"}, http.StatusForbidden},
	} {
		if _, err := s.pool.Exec(t.Context(), `update pawl.schedules set paused_at = null`); err != nil {
			t.Fatal(err)
		}
		got := s.post(t, "ann", "/ui/jobs/settle/pause", url.Values{"reason": {why}}, c.header...)
		if got.status != c.want {
			t.Errorf("%s: %d, want %d", what, got.status, c.want)
		}
		if c.want == http.StatusSeeOther {
			n++
		} else if !strings.Contains(got.body, "trusted-origin") || !strings.Contains(got.body, host) {
			t.Errorf("%s: the answer doesn't name both sites and the way out: %s", what, text(got.body))
		}
		if rows := one(t, s.pool, `select count(*)::text from pawl.audit where action = 'pause'`); rows != fmt.Sprint(n) {
			t.Errorf("%s: %s rows in the audit, want %d", what, rows, n)
		}
	}
}

var address = regexp.MustCompile(`(?:href|src|action|data-hx-get)="([^"]*)"`)

func TestNothingOnAnyPageLeavesTheBasePath(t *testing.T) {
	t.Parallel()
	s := staff(t, days, func(c *web.Config) { c.BasePath = "/a/b/" })
	s.held(t, "worker-1")
	if _, err := s.pool.Exec(t.Context(), `select pawl.request_release('ledger', (select token from pawl.locks where name = 'ledger'), 'worker hangs, pager', false, 'x', 'x', true)`); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range ui.Routes() {
		if r.Method != http.MethodGet || r.Role == "" {
			continue
		}
		path := "/a/b" + addressOf(r.Pattern)
		got := s.get(t, "bob", path)
		if got.status != http.StatusOK {
			continue // of those that have no such thing here
		}
		for _, a := range address.FindAllStringSubmatch(got.body, -1) {
			n++
			if to := a[1]; !strings.HasPrefix(to, "/a/b/") && !strings.HasPrefix(to, "#") {
				t.Errorf("%s leads to %s", path, to)
			}
		}
	}
	if n < 300 {
		t.Errorf("%d addresses only", n)
	}
	s.post(t, "bob", "/a/b/ui/jobs/settle/pause", url.Values{"reason": {why}}).goes(t, "/a/b/ui/jobs/settle")
}
