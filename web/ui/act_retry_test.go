package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// outage is a job with 102 dead periods, beside another with one.
const outage = days + `;
insert into pawl.periods (job, key, lock, state, reason, start_at, end_at, scheduled_at, attempts, ended_at, token)
select 'settle', to_char(d, 'YYYY-MM-DD'), 'job:settle', 'dead', 'attempts', d, d + interval '1 d', d + interval '1 d', 4, now(), 7 from generate_series('2025-06-01Z'::timestamptz, '2025-09-09Z', '1 d') d;
insert into pawl.periods (job, key, lock, state, reason, start_at, end_at, scheduled_at, attempts, ended_at) values
 ('report', '2025-06-01T00+00:00', 'job:report', 'dead', 'attempts', '2025-06-01Z', '2025-06-01Z', '2025-06-01Z', 4, now())`

const (
	retryDead = "/ui/jobs/settle/retry"
	stillDead = `select count(*)::text from pawl.periods where job = 'settle' and state = 'dead'`
)

func TestAllDeadPeriodsOfAJobAreRetriedAtOnceWithAReason(t *testing.T) {
	t.Parallel()
	s := staff(t, outage, nil)
	s.get(t, "ann", "/ui/jobs/settle").has(t, `href="`+retryDead+`"`)
	s.get(t, "ann", "/ui/periods/settle?state=dead").has(t, `href="`+retryDead+`"`)
	s.get(t, "eve", "/ui/jobs/settle").lacks(t, retryDead)
	s.get(t, "eve", retryDead).is(t, http.StatusForbidden)
	page := s.get(t, "ann", retryDead)
	page.has(t, "100 dead periods", "2025-06-01", "Others are dead, too", "Retry 100 periods of settle")
	page.lacks(t, ">2025-09-09<", ">2026-01-02<") // the oldest first
	form := s.form(t, "ann", retryDead)
	if n := len(form["dead"]); n != 100 {
		t.Fatalf("the form is for %d periods, want 100", n)
	}
	s.post(t, "ann", retryDead, form).is(t, http.StatusUnprocessableEntity) // no reason
	s.post(t, "ann", retryDead, url.Values{"reason": {why}}).is(t, http.StatusBadRequest)
	for _, bad := range []string{"x", "1 7", "0 7 2025-06-01", "1 x 2025-06-01", "1 -1 2025-06-01", "1 7 "} {
		s.post(t, "ann", retryDead, url.Values{"reason": {why}, "dead": {bad}}).is(t, http.StatusBadRequest)
	}
	many := url.Values{"reason": {why}}
	for range 101 {
		many.Add("dead", "1 7 2025-06-01")
	}
	s.post(t, "ann", retryDead, many).is(t, http.StatusBadRequest)
	if got := one(t, s.pool, stillDead); got != "102" {
		t.Fatalf("%s are dead before anybody was right, want 102", got)
	}
	form.Set("reason", why)
	s.post(t, "ann", retryDead, form).goes(t, "/ui/periods/settle")
	if got := one(t, s.pool, stillDead); got != "2" {
		t.Errorf("%s are still dead, want 2", got)
	}
	if got := one(t, s.pool, `select count(distinct period) || '|' || min(actor) || '|' || min(reason) from pawl.audit where action = 'retry' and job = 'settle'`); got != "100|ann|"+why {
		t.Errorf("audit: %s", got)
	}
	if got := one(t, s.pool, `select count(*)::text from pawl.periods where job = 'report' and state = 'dead'`); got != "1" {
		t.Error("another job's period was retried")
	}
	s.post(t, "ann", retryDead, s.form(t, "ann", retryDead, "reason", why)).goes(t, "/ui/periods/settle")
	s.get(t, "ann", retryDead).has(t, "No period of settle is dead.")
	eventually(t, "the job's page offers it no more", func() bool { return !strings.Contains(s.get(t, "ann", "/ui/jobs/settle").body, retryDead) })
}

func TestWhatHasChangedSinceTheListWasShownIsNotRetried(t *testing.T) {
	t.Parallel()
	s := staff(t, outage, nil)
	form := s.form(t, "ann", retryDead, "reason", why)
	for n, since := range []string{
		`update pawl.periods set token = 8 where job = 'settle' and key = '2025-06-01'`, // it was retried meanwhile, and is dead again
		`update pawl.periods set state = 'cancelled', reason = 'operator' where job = 'settle' and key = '2025-06-02'`,
	} {
		if _, err := s.pool.Exec(t.Context(), since); err != nil {
			t.Fatal(n, err)
		}
	}
	got := s.post(t, "ann", retryDead, form)
	got.is(t, http.StatusConflict)
	got.has(t, "98 of 100 are owed again", "2025-06-01: ", "2025-06-02: ")
	if got := one(t, s.pool, `select string_agg(key || ' ' || state, ', ' order by key) from pawl.periods where job = 'settle' and key in ('2025-06-01', '2025-06-02', '2025-06-03')`); got != "2025-06-01 dead, 2025-06-02 cancelled, 2025-06-03 open" {
		t.Error(got)
	}
	if got := one(t, s.pool, `select count(*)::text from pawl.audit where action = 'retry'`); got != "98" {
		t.Errorf("%s retries in the audit, want 98", got)
	}
}

func TestTheBarCountsWhatAnApproverMayDecide(t *testing.T) {
	t.Parallel()
	s := staff(t, days, nil)
	const none = `href="/ui/approvals">Approvals</a>`
	s.get(t, "bob", "/ui/locks").has(t, none)
	s.held(t, "worker-1")
	id := func(who string) string { return one(t, s.pool, `select id from pawl.keys where name = '`+who+`'`) }
	ask := func(who string) {
		if _, err := s.pool.Exec(t.Context(), `select pawl.request_release('ledger', (select token from pawl.locks where name = 'ledger'), 'worker hangs, pager', false, $1, $2, true)`, id(who), who); err != nil {
			t.Fatal(err)
		}
	}
	ask("bob")
	bar := func(who string) string {
		return between(t, s.get(t, who, "/ui/locks").body, `href="/ui/approvals">`, "</a>")
	}
	eventually(t, "who may approve is told", func() bool { return strings.Contains(bar("cas"), `<b class="count">1<`) })
	for who, want := range map[string]string{"ann": "Approvals", "eve": "Approvals", "bob": "Approvals"} { // may not; may not; has asked
		if got := bar(who); got != want {
			t.Errorf("%s reads %q", who, got)
		}
	}
	// The same count is the same page.
	tag := s.get(t, "cas", "/ui/locks").header.Get("ETag")
	if again := send(t, http.MethodGet, s.URL+"/ui/runs", "Cookie", "pawl_key="+s.bearer["cas"]); !strings.Contains(again.body, `class="count">1<`) {
		t.Error("another page doesn't count")
	}
	if got := s.get(t, "cas", "/ui/locks").header.Get("ETag"); tag == "" || got != tag {
		t.Errorf("ETag %s after %s", got, tag)
	}
	s.post(t, "cas", "/ui/approvals/1", url.Values{"decision": {"decline"}, "note": {"no"}}).is(t, http.StatusSeeOther)
	eventually(t, "it counts no more", func() bool { return bar("cas") == "Approvals" })
	if got := s.get(t, "cas", "/ui/locks").header.Get("ETag"); got == tag {
		t.Error("another count is the same page")
	}
}

func TestARunThatFoundNoSlotSaysSoAndWhoHoldsThem(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story+`;
insert into pawl.locks (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
select 'report:acme#' || n, 5, 1, gen_random_uuid(), 'worker-' || n, '30 s', now(), now(), now() + interval '1 h' from unnest(array['0', '1', '7', '0#0']) n;
insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, state, started_at, ended_at, error)
values ('00000000-0000-4000-8000-00000000000f', 'settle', '2026-09-17', 1, 1, 'job:settle', 3, 'worker-9', 'drained', now(), now(), 'jobs: waits for a slot: lockrepo: all 2 slots of "report:acme" are held')`, nil)
	got := send(t, http.MethodGet, srv.URL+"/ui/runs/00000000-0000-4000-8000-00000000000f")
	got.has(t, "It did not begin: all 2 slots of", "report:acme</a> were held, which costs no attempt.", "by worker-0", "by worker-1", "The period is tried again")
	got.lacks(t, "by worker-7", "by worker-0#0", "and others")
	send(t, http.MethodGet, srv.URL+"/ui/runs/00000000-0000-4000-8000-000000000004").lacks(t, "It did not begin")
}
