package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// posted is an outbox with a dead message that three wait behind, one that waits to be sent in another key, and one that was sent.
const posted = `
insert into pawl.schedules (job, app, definition, lock, watermark) values
 ('mail', 'shop', '{"schedule": "@manual", "overlap": "allow", "outbox": true, "runs": 4, "on_dead": "hold_next"}', 'job:mail', now()),
 ('report', 'shop', '{"schedule": "@daily", "period": "day", "runs": 4}', 'job:report', now());
select pawl.enqueue('mail', 'customer 42', '{"card": "4242"}');
insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, state, started_at, ended_at, error)
select '00000000-0000-4000-8000-000000000005', 'mail', period, 1, 4, 'job:mail#customer 42', 7, 'worker-1', 'failed', now(), now(), 'mailbox full' from pawl.outbox where seq = 1;
update pawl.periods set state = 'dead', reason = 'attempts', waits = 'decision', ended_at = now(), attempts = 4, token = 7, run = '00000000-0000-4000-8000-000000000005';
select pawl.enqueue('mail', 'customer 42', '2'), pawl.enqueue('mail', 'customer 42', '3'), pawl.enqueue('mail', 'customer 42', '4');
select pawl.enqueue('mail', 'customer 7', '1');
select pawl.enqueue('mail', 'customer 9', '1');
update pawl.periods set state = 'complete', ended_at = now() where lock = 'job:mail#customer 9';
insert into pawl.periods (job, key, lock, state, reason, start_at, end_at, scheduled_at, attempts, ended_at)
values ('report', '2026-01-02', 'job:report', 'dead', 'attempts', '2026-01-02Z', '2026-01-03Z', '2026-01-03Z', 4, now())`

const (
	messageCell = `data-l="Number" class="n num">`
	deadPeriod  = `select period from pawl.outbox where key = 'customer 42' and seq = 1`
	messageRow  = `select concat_ws('|', state, reason, attempts, max_attempts) from pawl.periods where key = (` + deadPeriod + `)`
)

func TestTheOutboxListsWhatIsDeadAndWhatWaits(t *testing.T) {
	t.Parallel()
	s := staff(t, posted, nil)
	dead := s.get(t, "eve", "/ui/outbox")
	dead.has(t, "customer 42", "mailbox full", "after 4 runs", `data-l="Behind it" class="n num">3<`, "A dead message holds those behind it", `aria-current="page">Dead</a>`)
	dead.lacks(t, "4242", "customer 7", "/retry", "/drop", "2026-01-02")
	waits := s.get(t, "eve", "/ui/outbox?state=waiting")
	waits.has(t, "waits behind a dead one", "waits to be sent", "customer 7")
	waits.lacks(t, "mailbox full", "customer 9", "4242")
	if n := strings.Count(waits.body, messageCell); n != 4 {
		t.Errorf("%d messages wait, want 4", n)
	}
	s.get(t, "eve", "/ui/outbox?state=waiting&key=customer+7").lacks(t, "customer 42</a>")
	s.get(t, "eve", "/ui/outbox?outbox=nobody").has(t, "No message fits.")
	for _, bad := range []string{"?state=lost", "?after=x", "?after=2026-01-01T00:00:00Z,x"} {
		s.get(t, "eve", "/ui/outbox"+bad).is(t, http.StatusUnprocessableEntity)
	}
	s.get(t, "eve", "/ui/jobs").has(t, `href="/ui/outbox"`)
	s.get(t, "eve", "/ui/jobs/mail").has(t, `href="/ui/outbox?outbox=mail"`, `href="/ui/outbox?outbox=mail&amp;state=waiting"`)
	s.get(t, "eve", "/ui/jobs/report").lacks(t, "messages")
	home := s.get(t, "ann", "/")
	home.has(t, "Dead messages</h2>", "customer 42", "/drop")
	if strings.Index(home.body, "Dead messages") > strings.Index(home.body, "Stale claims</h2>") {
		t.Error("stale claims stand above dead messages")
	}
	quiet, _ := open(t, story, nil)
	send(t, http.MethodGet, quiet.URL+"/").lacks(t, "Dead messages", "Unmatched effects")
}

func TestTheOutboxComesInPages(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, posted+`;
select pawl.enqueue('mail', 'many', n::text) from generate_series(1, 250) n;
update pawl.periods set state = 'dead', reason = 'attempts', waits = 'decision', ended_at = now() where lock = 'job:mail#many'`, nil)
	all, pages := rows(t, srv.URL, "/ui/outbox?outbox=mail", messageCell)
	if pages != 3 || len(all) != 251 || all[0] != "1" || all[1] != "1" || all[250] != "250" {
		t.Errorf("%d pages with %d messages, want 3 with 251: %v", pages, len(all), all)
	}
	send(t, http.MethodGet, srv.URL+"/").has(t, `The oldest 10. There are more: <a href="/ui/outbox">all dead messages`)
}

func TestADeadMessageIsRetriedOrDroppedWithAReasonAndAudited(t *testing.T) {
	t.Parallel()
	for act, want := range map[string]struct{ row, audit, behind, button string }{
		"retry": {"open|operator|4|8", "retry", "dead dead dead", "Retry message 1 of customer 42"},
		"drop":  {"cancelled|operator|4|4", "cancel", "", "Drop message 1 of customer 42"},
	} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			s := staff(t, posted, nil)
			period := one(t, s.pool, deadPeriod)
			path := "/ui/outbox/mail/" + period + "/" + act
			s.get(t, "eve", path).is(t, http.StatusForbidden)
			s.get(t, "ann", path).has(t, want.button, "4242", "mailbox full", "Behind it")
			form := s.form(t, "ann", path)
			s.post(t, "ann", path, form).is(t, http.StatusUnprocessableEntity) // no reason
			s.post(t, "eve", path, s.form(t, "ann", path, "reason", why)).is(t, http.StatusForbidden)
			s.post(t, "ann", path, url.Values{"reason": {why}}).is(t, http.StatusBadRequest) // for nothing that was shown
			s.post(t, "ann", path, s.form(t, "ann", path, "reason", why, "state", "open")).is(t, http.StatusBadRequest)
			s.post(t, "ann", path, s.form(t, "ann", path, "reason", why, "token", "6")).is(t, http.StatusConflict) // another run has had it since
			if got := one(t, s.pool, messageRow); got != "dead|attempts|4|1" && got != "dead|attempts|4|4" {
				t.Fatalf("it is %s before anybody was right", got)
			}
			form.Set("reason", why)
			s.post(t, "ann", path, form).goes(t, "/ui/outbox")
			if got := one(t, s.pool, messageRow); got != want.row {
				t.Errorf("it is %s, want %s", got, want.row)
			}
			if got := one(t, s.pool, lastAudit); got != "ann|"+want.audit+"|mail|"+period+"|"+why {
				t.Errorf("audit: %s", got)
			}
			behind := `select coalesce(string_agg(waits, ' '), '') from pawl.periods where lock = 'job:mail#customer 42' and state = 'open' and key <> (` + deadPeriod + `)`
			if got := one(t, s.pool, behind); got != want.behind && act == "drop" {
				t.Errorf("those behind wait for %q", got)
			}
			s.post(t, "bob", path, form).is(t, http.StatusConflict)
			s.get(t, "bob", path).is(t, http.StatusConflict)
		})
	}
}

// The address of a message is no other way to any period.
func TestAPeriodThatIsNoMessageIsNotActedOnAsOne(t *testing.T) {
	t.Parallel()
	s := staff(t, posted, nil)
	for _, path := range []string{"/ui/outbox/report/2026-01-02/retry", "/ui/outbox/report/2026-01-02/drop", "/ui/outbox/mail/nothing/drop"} {
		s.get(t, "ann", path).is(t, http.StatusNotFound)
		s.post(t, "ann", path, url.Values{"reason": {why}, "state": {"dead"}, "revision": {"1"}}).is(t, http.StatusNotFound)
	}
	if got := one(t, s.pool, `select state from pawl.periods where job = 'report'`); got != "dead" {
		t.Errorf("it is %s", got)
	}
}
