package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// days is a job of days with a complete, a dead and an open one, and a job that runs only when somebody asks.
const days = `
insert into pawl.schedules (job, app, definition, lock, watermark) values
  ('settle', 'shop', '{"schedule": "@daily", "period": "day", "timezone": "UTC", "catch_up": "all", "catch_up_window": 34560000000000000, "runs": 4}', 'job:settle', now()),
  ('report', 'shop', '{"schedule": "@hourly", "period": "hour", "timezone": "UTC", "runs": 4}', 'job:report', now()),
  ('hand', 'back', '{"schedule": "@manual", "period": "tick", "runs": 4}', 'job:hand', now());
insert into pawl.locks (name, token, incarnation) values ('job:settle', 1795969942676573, 1);
insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, attempts, ended_at, reason, token)
values ('settle', '2026-01-01', 'job:settle', 'complete', '2026-01-01Z', '2026-01-02Z', '2026-01-02Z', 1, '2026-01-02Z', null, 1795969942676571),
       ('settle', '2026-01-02', 'job:settle', 'dead', '2026-01-02Z', '2026-01-03Z', '2026-01-03Z', 4, '2026-01-03Z', 'attempts', 1795969942676572),
       ('settle', '2026-01-03', 'job:settle', 'open', '2026-01-03Z', '2026-01-04Z', '2026-01-04Z', 0, null, null, null);`

const lastAudit = `select concat_ws('|', actor, action, job, period, reason) from pawl.audit where action not like 'key%' order by id desc limit 1`

func TestAJobIsPausedAndResumedWithAReason(t *testing.T) {
	t.Parallel()
	s := staff(t, days, nil)
	page := s.get(t, "ann", "/ui/jobs/settle/pause")
	page.has(t, "Pause settle", "Until <small>(UTC)</small>")
	form := s.form(t, "ann", "/ui/jobs/settle/pause")
	s.post(t, "ann", "/ui/jobs/settle/pause", form).is(t, http.StatusUnprocessableEntity) // no reason
	form.Set("reason", "the bank is down")
	form.Set("until", "2020-01-01T06:00")
	over := s.post(t, "ann", "/ui/jobs/settle/pause", form)
	over.is(t, http.StatusUnprocessableEntity)
	over.has(t, "That time is over", "the bank is down</textarea>", `value="2020-01-01T06:00"`)
	form.Set("until", "2100-01-01T06:00")
	s.post(t, "ann", "/ui/jobs/settle/pause", form, "Cookie", "pawl_key="+s.bearer["ann"]+"; pawl_zone=Asia/Kolkata").goes(t, "/ui/jobs/settle")
	if got := one(t, s.pool, `select paused_by || ' ' || pause_note || ' ' || (paused_until at time zone 'utc')::text from pawl.schedules where job = 'settle'`); got != "ann the bank is down 2100-01-01 00:30:00" {
		t.Errorf("paused: %s", got)
	}
	if got := one(t, s.pool, lastAudit); got != "ann|pause|settle|the bank is down" {
		t.Errorf("audit: %s", got)
	}
	s.post(t, "bob", "/ui/jobs/settle/pause", form).is(t, http.StatusConflict) // the form is stale
	s.get(t, "bob", "/ui/jobs/settle/pause").is(t, http.StatusConflict)

	resume := s.form(t, "bob", "/ui/jobs/settle/resume", "owe", "latest", "reason", "it is back")
	if _, err := s.pool.Exec(t.Context(), `update pawl.schedules set paused_at = paused_at + interval '1 s' where job = 'settle'`); err != nil {
		t.Fatal(err)
	}
	s.post(t, "bob", "/ui/jobs/settle/resume", resume).is(t, http.StatusConflict) // it was paused anew
	s.post(t, "bob", "/ui/jobs/settle/resume", s.form(t, "bob", "/ui/jobs/settle/resume", "owe", "latest", "reason", "it is back")).goes(t, "/ui/jobs/settle")
	if got := one(t, s.pool, lastAudit); got != "bob|resume|settle|it is back" {
		t.Errorf("audit: %s", got)
	}
	s.post(t, "bob", "/ui/jobs/settle/resume", resume).is(t, http.StatusConflict)
	s.get(t, "bob", "/ui/jobs/nobody/pause").is(t, http.StatusNotFound)
}

func TestTheJobsOfAFilterArePausedAtOnceWithARowOfTheAuditForEach(t *testing.T) {
	t.Parallel()
	s := staff(t, days, nil)
	const path = "/ui/jobs/pause?app=shop"
	page := s.get(t, "ann", path)
	page.has(t, "Pause 2 jobs", "settle", "report", "app shop")
	page.lacks(t, ">hand<")
	s.post(t, "ann", path, s.form(t, "ann", path)).is(t, http.StatusUnprocessableEntity)
	form := s.form(t, "ann", path, "reason", "freeze")
	if _, err := s.pool.Exec(t.Context(), `insert into pawl.schedules (job, app, definition, lock, watermark) select 'later', app, definition, 'l', now() from pawl.schedules where job = 'settle'`); err != nil {
		t.Fatal(err)
	}
	s.post(t, "ann", path, form).goes(t, "/ui/jobs?app=shop")
	if got := one(t, s.pool, `select string_agg(job || ' ' || reason, ',' order by job) from pawl.audit where action = 'pause'`); got != "report freeze,settle freeze" {
		t.Errorf("audit: %s; a job that the form didn't show is left alone", got)
	}
	again := s.post(t, "ann", path, form)
	again.is(t, http.StatusConflict)
	again.has(t, "0 of 2 were paused", "settle: Somebody has paused it already")

	const back = "/ui/jobs/resume?app=shop"
	s.get(t, "ann", back).has(t, "Resume 2 jobs", "paused by ann")
	s.post(t, "ann", back, s.form(t, "ann", back, "owe", "none")).goes(t, "/ui/jobs?app=shop")
	if got := one(t, s.pool, `select count(*)::text from pawl.schedules where paused_at is not null`); got != "0" {
		t.Errorf("%s are paused", got)
	}
	s.get(t, "ann", back).has(t, "Nothing to resume", "app shop")
	s.get(t, "ann", "/ui/jobs/pause?state=odd").is(t, http.StatusUnprocessableEntity)
}

func TestAJobIsRunNowForTheReasonGiven(t *testing.T) {
	t.Parallel()
	s := staff(t, days, nil)
	form := s.form(t, "ann", "/ui/jobs/settle/run", "reason", "for the auditors")
	key := form.Get("key")
	if _, err := time.Parse(time.DateOnly, key); err != nil {
		t.Fatalf("the form is made for %q", key)
	}
	other := url.Values{"key": {"2026-01-01"}, "state": {"absent"}}
	s.post(t, "ann", "/ui/jobs/settle/run", other).is(t, http.StatusConflict) // of another day
	s.post(t, "ann", "/ui/jobs/settle/run", form).goes(t, "/ui/jobs/settle")
	if got := one(t, s.pool, lastAudit); got != "ann|trigger|settle|"+key+"|for the auditors" {
		t.Errorf("audit: %s", got)
	}
	if _, err := s.pool.Exec(t.Context(), `update pawl.periods set state = 'complete', ended_at = now() where key = $1`, key); err != nil {
		t.Fatal(err)
	}
	s.get(t, "ann", "/ui/jobs/settle/run").is(t, http.StatusConflict)
	s.post(t, "ann", "/ui/jobs/settle/run", form).is(t, http.StatusConflict)

	manual := s.get(t, "ann", "/ui/jobs/hand/run")
	manual.has(t, "A period of its own")
	for range 2 {
		form := s.form(t, "ann", "/ui/jobs/hand/run")
		s.post(t, "ann", "/ui/jobs/hand/run", form).goes(t, "/ui/jobs/hand")
		s.post(t, "ann", "/ui/jobs/hand/run", form).is(t, http.StatusConflict) // sent twice
	}
	s.post(t, "ann", "/ui/jobs/hand/run", url.Values{"key": {"../x"}, "state": {"absent"}}).is(t, http.StatusUnprocessableEntity)
	s.post(t, "ann", "/ui/jobs/hand/run", url.Values{}).is(t, http.StatusBadRequest)
	if got := one(t, s.pool, `select count(*)::text from pawl.periods where job = 'hand' and state = 'open'`); got != "2" {
		t.Errorf("%s periods are owed", got)
	}
}

func TestAPeriodIsRerunRetriedAndCancelledAsItWasSeen(t *testing.T) {
	t.Parallel()
	s := staff(t, days, nil)
	const rerun, retry, cancel = "/ui/periods/settle/2026-01-01/rerun", "/ui/periods/settle/2026-01-02/retry", "/ui/periods/settle/2026-01-03/cancel"
	s.get(t, "ann", rerun).has(t, "Rerun settle, period 2026-01-01", "as revision 2", "1795969942·676571")
	form := s.form(t, "ann", rerun, "reason", "the rates were wrong")
	empty := s.form(t, "ann", rerun)
	s.post(t, "ann", rerun, empty).is(t, http.StatusUnprocessableEntity)
	stale := url.Values{"reason": {"again"}, "revision": {"7"}, "state": {"complete"}}
	s.post(t, "ann", rerun, stale).is(t, http.StatusConflict)
	s.post(t, "ann", rerun, form).goes(t, "/ui/periods/settle")
	if got := one(t, s.pool, lastAudit); got != "ann|rerun|settle|2026-01-01|the rates were wrong" {
		t.Errorf("audit: %s", got)
	}
	s.post(t, "ann", rerun, form).is(t, http.StatusConflict)
	s.get(t, "ann", rerun).is(t, http.StatusConflict) // revision 2 is open

	form = s.form(t, "ann", retry, "reason", "the disk is there again")
	moved := url.Values{"revision": {"1"}, "state": {"dead"}, "token": {"5"}}
	s.post(t, "ann", retry, moved).is(t, http.StatusConflict) // another run has died since
	s.post(t, "ann", retry, form).goes(t, "/ui/periods/settle")
	s.post(t, "ann", retry, form).is(t, http.StatusConflict)
	if got := one(t, s.pool, lastAudit); got != "ann|retry|settle|2026-01-02|the disk is there again" {
		t.Errorf("audit: %s", got)
	}

	form = s.form(t, "ann", cancel, "reason", "not needed")
	if _, err := s.pool.Exec(t.Context(), `update pawl.periods set state = 'running', run = gen_random_uuid(), token = 9, attempts = 1 where key = '2026-01-03'`); err != nil {
		t.Fatal(err)
	}
	s.post(t, "ann", cancel, form).is(t, http.StatusConflict) // it was open when the form was made
	s.get(t, "ann", cancel).has(t, "loses its lease at once")
	s.post(t, "ann", cancel, s.form(t, "ann", cancel, "reason", "not needed")).goes(t, "/ui/periods/settle")
	if got := one(t, s.pool, `select state from pawl.periods where key = '2026-01-03'`); got != "cancelled" {
		t.Errorf("it is %s", got)
	}
	s.get(t, "ann", cancel).is(t, http.StatusConflict)
	s.get(t, "ann", "/ui/periods/settle/1999-01-01/cancel").is(t, http.StatusNotFound)
	s.post(t, "ann", cancel, url.Values{"reason": {"x"}}).is(t, http.StatusBadRequest)
}

func TestABackfillListsWhatItWouldRunBeforeItIsConfirmed(t *testing.T) {
	t.Parallel()
	s := staff(t, days, nil)
	const path = "/ui/jobs/settle/backfill"
	s.get(t, "ann", path).has(t, "List what would run", "The newest period is 2026-01-03")
	wrong := s.get(t, "ann", path+"?from=2026-13-01&to=2026-01-02")
	wrong.has(t, `role="alert"`, `value="2026-13-01"`, `aria-invalid="true"`)
	s.get(t, "ann", path+"?from=2026-01-01").has(t, "none would be owed")
	list := s.get(t, "ann", path+"?from=2025-12-30&to=2026-01-03")
	list.has(t, "3 of 5 periods would run", "2025-12-30", "never owed", "complete, left alone", "dead", "Backfill 3 periods of settle")
	if n := one(t, s.pool, `select count(*)::text from pawl.periods`); n != "3" {
		t.Fatalf("the list has owed something: %s periods", n)
	}
	form := s.form(t, "ann", path+"?from=2025-12-30&to=2026-01-03")
	s.post(t, "ann", path+"?from=2025-12-30&to=2026-01-03", form).is(t, http.StatusUnprocessableEntity) // no reason
	form.Set("reason", "the new ledger")
	other := url.Values{}
	for name, v := range form {
		other[name] = v
	}
	other.Set("owed", "4")
	s.post(t, "ann", path, other).is(t, http.StatusConflict)
	s.post(t, "ann", path, form).goes(t, "/ui/periods/settle")
	if got := one(t, s.pool, `select string_agg(key || ' ' || state, ',' order by key) from pawl.periods where origin = 'backfill'`); got != "2025-12-30 open,2025-12-31 open,2026-01-02 open" {
		t.Errorf("owed: %s", got)
	}
	if got := one(t, s.pool, lastAudit); got != "ann|backfill|settle|the new ledger" {
		t.Errorf("audit: %s", got)
	}
	s.post(t, "ann", path, form).is(t, http.StatusConflict) // they are owed now
	s.get(t, "ann", "/ui/jobs/hand/backfill").is(t, http.StatusConflict)
	if strings.Contains(s.get(t, "ann", path+"?from=2000-01-01&to=2025-01-01").body, "No answer") {
		t.Error("a long list isn't answered")
	}
}

func TestARunIsGivenTheParamsThatItsJobDeclares(t *testing.T) {
	t.Parallel()
	s := staff(t, `insert into pawl.schedules (job, app, definition, lock, watermark) values ('export', 'shop',
  '{"schedule": "@manual", "period": "tick", "runs": 4, "params": {"format": {"type": "string", "default": "csv", "enum": ["csv", "json"]}, "rows": {"type": "int"}}}', 'l', now())`, nil)
	const path = "/ui/jobs/export/run"
	s.get(t, "ann", path).has(t, "Param rows", `name="param.rows"`, "<option>json</option>", "csv if nothing is given")
	for rows, want := range map[string]string{"": "is missing", "many": "Param rows"} {
		got := s.post(t, "ann", path, s.form(t, "ann", path, "param.rows", rows, "param.format", "json"))
		got.is(t, http.StatusUnprocessableEntity)
		got.has(t, want, `role="alert"`, "<option selected>json</option>")
	}
	s.post(t, "ann", path, s.form(t, "ann", path, "param.rows", "7", "param.format", "json")).goes(t, "/ui/jobs/export")
	if got := one(t, s.pool, `select params::text from pawl.periods where job = 'export'`); got != `{"rows": 7, "format": "json"}` {
		t.Errorf("it is given %s", got)
	}
}
