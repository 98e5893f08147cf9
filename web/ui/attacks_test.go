package ui_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"pawl/web"
)

// given is what a run was given and what another said before its process died.
const given = days + `;
insert into pawl.schedules (job, app, definition, lock, watermark) values
  ('pay', 'shop', '{"schedule": "@daily", "period": "day", "timezone": "UTC", "runs": 4, "params": {"iban": {"type": "string", "default": "DEFAULT-SECRET"}}}', 'job:pay', now());
insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, attempts, ended_at, token, params)
values ('pay', '2026-01-01', 'job:pay', 'complete', '2026-01-01Z', '2026-01-02Z', '2026-01-02Z', 1, '2026-01-02Z', 1795969942676571, '{"iban": "PARAM-SECRET"}');
insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, state, started_at, ended_at)
values ('00000000-0000-4000-8000-000000000009', 'pay', '2026-01-01', 1, 1, 'job:pay', 1795969942676571, 'w', 'lost', '2026-01-02Z', '2026-01-02Z');
insert into pawl.outputs (run, job, bytes, head, tail, partial) values ('00000000-0000-4000-8000-000000000009', 'pay', 13, 'OUTPUT-SECRET', '', true);
insert into pawl.audit (actor, action, job, period, detail)
values ('ann', 'rerun', 'pay', '2026-01-01', '{"revision": 2, "params": {"iban": "AUDIT-SECRET"}}')`

func TestAReaderSeesNothingThatARunWasGivenOrSaid(t *testing.T) {
	t.Parallel()
	s := staff(t, given, nil)
	seen := map[string]bool{}
	for _, path := range []string{
		"/", "/ui/jobs", "/ui/jobs/pay", "/ui/periods/pay", "/ui/periods/pay/2026-01-01", "/ui/runs", "/ui/runs/00000000-0000-4000-8000-000000000009", "/ui/audit", "/ui/audit.csv", "/ui/queue",
	} {
		for range 2 { // alone, and after who may see it
			got := s.get(t, "eve", path)
			got.is(t, http.StatusOK)
			if i := strings.Index(got.body, "-SECRET"); i >= 0 {
				t.Errorf("%s shows a reader %s", path, got.body[max(0, i-60):i+7])
			}
			all := s.get(t, "ann", path)
			for _, secret := range []string{"DEFAULT", "PARAM", "OUTPUT", "AUDIT"} {
				seen[secret] = seen[secret] || strings.Contains(all.body, secret+"-SECRET")
			}
			tag := send(t, http.MethodGet, s.URL+path, "Cookie", "pawl_key="+s.bearer["eve"], "If-None-Match", all.header.Get("ETag"))
			if all.header.Get("ETag") != "" && tag.status != http.StatusOK {
				t.Errorf("%s: a reader is told that an operator's page is theirs: %d", path, tag.status)
			}
		}
	}
	if len(seen) != 4 || !seen["DEFAULT"] || !seen["PARAM"] || !seen["OUTPUT"] || !seen["AUDIT"] {
		t.Errorf("an operator sees %v", seen)
	}
}

// The key of what is shared must tell a name from the next.
func TestTwoAddressesAreNeverOnePage(t *testing.T) {
	t.Parallel()
	s := staff(t, days, nil)
	s.get(t, "eve", "/ui/periods/settle%2F2026-01-01/x").is(t, http.StatusNotFound)
	s.get(t, "eve", "/ui/periods/settle/2026-01-01%2Fx").is(t, http.StatusUnprocessableEntity)
}

func TestAFormFromElsewhereIsRefusedWhateverItCallsItself(t *testing.T) {
	t.Parallel()
	s := staff(t, days, nil)
	before := one(t, s.pool, everything)
	form := url.Values{"reason": {why}}
	for _, h := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Sec-Fetch-Site", "SAME-ORIGIN"},
		{"Origin", "null"},
		{"Origin", "https://evil.example"},
		{"Origin", "http://127.0.0.1"},
		{"Origin", s.URL + ".evil.example"},
		{"Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"},
		{"Sec-Fetch-Site", "cross-site", "Origin", s.URL},
		{"Sec-Fetch-Site", "cross-site", "X-HTTP-Method-Override", "GET"},
	} {
		for _, path := range []string{"/ui/jobs/settle/pause", "/ui/sign-in", "/ui/sign-out", "/ui/prefs/theme", "/ui/approvals/1"} {
			if got := s.post(t, "bob", path, form, h...); got.status != http.StatusForbidden || got.header.Get("Set-Cookie") != "" {
				t.Errorf("%s with %v: %d", path, h, got.status)
			}
		}
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "post", "TRACE"} {
		for _, h := range [][]string{nil, {"X-HTTP-Method-Override", "POST"}, {"X-Method-Override", "POST"}} {
			send(t, method, s.URL+"/ui/jobs/settle/pause?_method=POST&"+form.Encode(), append(h, "Cookie", "pawl_key="+s.bearer["bob"])...)
		}
	}
	if one(t, s.pool, everything) != before {
		t.Error("something was changed")
	}
}

func TestAKeyThatIsSentToATLSPageIsSentOverTLSOnly(t *testing.T) {
	t.Parallel()
	s := staff(t, days, func(c *web.Config) { c.Cross, _ = web.Trusting("https://pawl.example.com") })
	for origin, want := range map[string]bool{"https://pawl.example.com": true, s.URL: false, "": false} {
		got := s.post(t, "", "/ui/sign-in", url.Values{"key": {s.bearer["ann"]}}, "Origin", origin)
		got.is(t, http.StatusSeeOther)
		if c := got.header.Get("Set-Cookie"); strings.Contains(c, "; Secure") != want || !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Lax") {
			t.Errorf("from %q: %s", origin, strings.ReplaceAll(c, s.bearer["ann"], "…"))
		}
	}
}

// A form for many is read whole before anything is done.
func TestAFormForManyThatIsNotOursDoesNothing(t *testing.T) {
	t.Parallel()
	s := staff(t, days, nil)
	before := one(t, s.pool, everything)
	for path, jobs := range map[string][]string{
		"/ui/jobs/pause":        {"settle", "report@yesterday"},
		"/ui/jobs/pause?q=x":    {"settle", "report@2026-01-01T00:00:00Z"},
		"/ui/jobs/resume":       {"settle"}, // of which pause?
		"/ui/jobs/resume?q=x":   {"settle@2026-01-01T00:00:00Z", "report"},
		"/ui/jobs/resume?q=y":   nil,
		"/ui/jobs/pause?app=no": {},
	} {
		s.post(t, "ann", path, url.Values{"reason": {why}, "job": jobs, "owe": {"none"}}).is(t, http.StatusBadRequest)
	}
	s.post(t, "ann", "/ui/jobs/pause", url.Values{"reason": {strings.Repeat("x", 70<<10)}, "job": {"settle"}}).is(t, http.StatusBadRequest)
	if one(t, s.pool, everything) != before {
		t.Error("some of it was done")
	}
}

func TestARunIsNotStartedForAPeriodThatSomebodyHasEndedMeanwhile(t *testing.T) {
	t.Parallel()
	s := staff(t, days, nil)
	form := s.form(t, "ann", "/ui/jobs/settle/run") // it is not owed yet
	s.post(t, "bob", "/ui/jobs/settle/run", s.form(t, "bob", "/ui/jobs/settle/run")).goes(t, "/ui/jobs/settle")
	cancel := "/ui/periods/settle/" + form.Get("key") + "/cancel"
	s.post(t, "bob", cancel, s.form(t, "bob", cancel, "reason", "the bank is down")).goes(t, "/ui/periods/settle")
	s.post(t, "ann", "/ui/jobs/settle/run", form).is(t, http.StatusConflict)
	if got := one(t, s.pool, `select state from pawl.periods where key = '`+form.Get("key")+`'`); got != "cancelled" {
		t.Errorf("the period is %s", got)
	}
}

// Of many who approve, decline, and take the lock meanwhile: one decision, and no successor loses its lease.
func TestASuccessorNeverLosesItsLeaseToAnOldRequest(t *testing.T) {
	t.Parallel()
	s := staff(t, days, nil)
	first := s.held(t, "worker-1")
	var paths []string
	for range 3 {
		form := s.form(t, "ann", "/ui/locks/ledger/release", "reason", why)
		paths = append(paths, s.post(t, "ann", "/ui/locks/ledger/release", form).header.Get("Location"))
	}
	var all sync.WaitGroup
	codes := make(chan int, 100)
	for i, path := range append(paths, paths...) {
		who := []string{"bob", "cas", "ann"}[i%3]
		all.Go(func() { codes <- s.post(t, who, path, url.Values{"decision": {"approve"}}).status })
	}
	all.Wait()
	heir := s.held(t, "worker-2")
	for _, path := range paths {
		for _, who := range []string{"bob", "cas"} {
			s.post(t, who, path, url.Values{"decision": {"approve"}}).is(t, http.StatusConflict)
		}
	}
	close(codes)
	done := 0
	for c := range codes {
		if c == http.StatusSeeOther {
			done++
		}
	}
	got := one(t, s.pool, `select concat_ws(' ', (select count(*) from pawl.audit where action = 'force_release'), (select count(*) from pawl.tenures where how = 'forced'), (select token from pawl.locks where name = 'ledger'))`)
	if want := fmt.Sprintf("1 1 %d", heir.Token.Seq); got != want || done != 1 || first.Token == heir.Token {
		t.Errorf("%d approvals; releases, tenures, token: %s, want %s", done, got, want)
	}
}
