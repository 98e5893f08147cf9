package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// payouts are a dead period with an effect in each state, one of whose period runs, a file with two versions, and a period
// in three shards.
const payouts = `
insert into pawl.schedules (job, app, definition, lock, watermark) values ('payout', 'shop', '{"schedule": "0 2 * * *", "period": "day"}', 'job:payout', now());
insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, attempts, run, token, ended_at, shards) values
 ('payout', '2026-09-16', 'job:payout', 'dead', '2026-09-16Z', '2026-09-17Z', '2026-09-17Z', 3, gen_random_uuid(), 5, now(), null),
 ('payout', '2026-09-17', 'job:payout', 'running', '2026-09-17Z', '2026-09-18Z', '2026-09-18Z', 1, '00000000-0000-4000-8000-000000000009', 7, null, 3);
insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, attempts, run, token, ended_at, origin, parent, shard, shard_no) values
 ('payout', '2026-09-17#a', 'job:payout#a', 'complete', '2026-09-17Z', '2026-09-18Z', '2026-09-18Z', 1, '00000000-0000-4000-8000-00000000000a', 8, now(), 'shard', '2026-09-17', 'a', 0),
 ('payout', '2026-09-17#b', 'job:payout#b', 'running', '2026-09-17Z', '2026-09-18Z', '2026-09-18Z', 2, '00000000-0000-4000-8000-00000000000b', 9, null, 'shard', '2026-09-17', 'b', 1),
 ('payout', '2026-09-17#c', 'job:payout#c', 'open', '2026-09-17Z', '2026-09-18Z', '2026-09-18Z', 0, null, null, null, 'shard', '2026-09-17', 'c', 2);
insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, state, started_at, ended_at, done, total) values
 ('00000000-0000-4000-8000-00000000000a', 'payout', '2026-09-17#a', 1, 1, 'job:payout#a', 8, 'worker-1', 'complete', now(), now(), 40, 40),
 ('00000000-0000-4000-8000-00000000000b', 'payout', '2026-09-17#b', 1, 2, 'job:payout#b', 9, 'worker-2', 'running', now(), null, 2, 40);
insert into pawl.effects (job, key, revision, effect, idempotency_key, state, request, run, token, operation, ended_at) values
 ('payout', '2026-09-16', 1, 'acme', 'payout:2026-09-16/acme', 'uncertain', '{"cents":4200}', gen_random_uuid(), 5, gen_random_uuid(), null),
 ('payout', '2026-09-16', 1, 'bolt', 'payout:2026-09-16/bolt', 'done', '1', gen_random_uuid(), 5, gen_random_uuid(), now()),
 ('payout', '2026-09-17', 1, 'cord', 'payout:2026-09-17/cord', 'intended', '1', gen_random_uuid(), 7, gen_random_uuid(), null),
 ('payout', '2026-09-16', 1, 'dime', 'payout:2026-09-16/dime', 'failed', '1', gen_random_uuid(), 5, gen_random_uuid(), now()),
 ('payout', '2026-09-16', 1, 'echo', 'payout:2026-09-16/echo', 'dropped', '1', gen_random_uuid(), 5, gen_random_uuid(), now());
insert into pawl.artifact_versions (name, version, lock, token, hash, size, file, holder, run, job, key, revision, operation, at, superseded_at)
select 'statements/acme.csv', n, 'job:payout', n + 4, repeat('abcdef0' || n, 8), 1536 * n, 'f' || n, 'worker-' || n, gen_random_uuid(), 'payout', '2026-09-16', 1, gen_random_uuid(), now(),
       case when n = 1 then now() end from generate_series(1, 2) n;
insert into pawl.artifacts (name, version, lock, token, hash, size, file, holder, at)
select name, version, lock, token, hash, size, file, holder, at from pawl.artifact_versions where version = 2;
`

const (
	decide       = "/ui/effects/1/decide"
	effectCell   = `class="key who"><span>`
	decidedAudit = `select actor || '|' || action || '|' || job || '|' || period || '|' || reason from pawl.audit order by id desc limit 1`
)

func TestEffectsAreListedByStateAndJob(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, payouts, nil)
	for query, want := range map[string]string{
		"": "echo dime cord bolt acme", "?state=uncertain": "acme", "?state=intended": "cord", "?state=failed": "dime", "?state=done": "bolt", "?state=dropped": "echo",
		"?job=nobody": "", "?job=payout&period=2026-09-17": "cord", "?before=3": "bolt acme",
	} {
		if got, _ := rows(t, srv.URL, "/ui/effects"+query, effectCell); strings.Join(got, " ") != want {
			t.Errorf("%s lists %v, want %s", query, got, want)
		}
	}
	for _, bad := range []string{"?state=lost", "?before=x", "?before=-1"} {
		if got := send(t, http.MethodGet, srv.URL+"/ui/effects"+bad); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s = %d, want 422", bad, got.status)
		}
	}
	send(t, http.MethodGet, srv.URL+"/ui/effects?job=nobody").has(t, "No effect fits.")
	send(t, http.MethodGet, srv.URL+"/ui/jobs").has(t, `href="/ui/effects"`, `href="/ui/artifacts"`)
}

func TestEffectsComeInPages(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, `
insert into pawl.effects (job, key, revision, effect, idempotency_key, state, request, run, token, operation)
select 'payout', 'k', 1, 'e' || n, 'i' || n, 'uncertain', '1', gen_random_uuid(), 5, gen_random_uuid() from generate_series(1, 250) n`, nil)
	all, pages := rows(t, srv.URL, "/ui/effects?state=uncertain", effectCell)
	if pages != 3 || len(all) != 250 || all[0] != "e250" || all[249] != "e1" {
		t.Errorf("%d pages with %d effects, want 3 with 250", pages, len(all))
	}
	send(t, http.MethodGet, srv.URL+"/").has(t, "The newest 10. There are more: <a href=\"/ui/effects?state=uncertain\"")
}

func TestAnUncertainEffectIsDecidedWithAReasonAndAudited(t *testing.T) {
	t.Parallel()
	s := staff(t, payouts, nil)
	home := s.get(t, "ann", "/")
	home.has(t, "Uncertain effects", `href="/ui/effects/1/decide"`)
	if strings.Index(home.body, "Uncertain effects") > strings.Index(home.body, "Stale claims</h2>") {
		t.Error("stale claims stand above uncertain effects")
	}
	s.get(t, "eve", "/").lacks(t, "/decide")
	s.get(t, "eve", decide).is(t, http.StatusForbidden)
	s.get(t, "ann", decide).has(t, "payout:2026-09-16/acme", "4200", "At least 10 characters")

	for what, c := range map[string]struct{ act, reason, response, want string }{
		"a short reason":    {"failed", "no", "", "at least 10"},
		"no decision":       {"", why, "", "Say what has become of it"},
		"another decision":  {"intended", why, "", "Say what has become of it"},
		"no JSON":           {"done", why, "{ref", "JSON"},
		"a failed response": {"failed", why, "1", "Only what is done"},
	} {
		got := s.post(t, "ann", decide, s.form(t, "ann", decide, "act", c.act, "reason", c.reason, "response", c.response))
		if got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d, want 422", what, got.status)
		}
		got.has(t, c.want, `role="alert"`, `aria-invalid="true"`, c.reason+"</textarea>")
	}
	s.post(t, "ann", decide, url.Values{"act": {"done"}, "reason": {why}}).is(t, http.StatusBadRequest) // for nothing that was shown

	form := s.form(t, "ann", decide, "act", "done", "reason", "the bank has it", "response", `{"ref": "po_81"}`)
	s.post(t, "ann", decide, form).goes(t, "/ui/effects")
	if got := one(t, s.pool, `select concat_ws('|', state, response, decided_by, reason) from pawl.effects where id = 1`); got != `done|{"ref": "po_81"}|ann|the bank has it` {
		t.Errorf("it is %s", got)
	}
	if got := one(t, s.pool, decidedAudit); got != "ann|effect_decide|payout|2026-09-16|the bank has it" {
		t.Errorf("audit: %s", got)
	}
	s.post(t, "bob", decide, form).is(t, http.StatusConflict)
	s.get(t, "bob", decide).is(t, http.StatusConflict)
	if got := one(t, s.pool, `select count(*)::text from pawl.audit where action = 'effect_decide'`); got != "1" {
		t.Errorf("%s decisions in the audit", got)
	}
	s.get(t, "ann", "/ui/audit").has(t, "po_81")
	s.get(t, "eve", "/ui/audit").lacks(t, "po_81") // what was answered isn't for readers
}

func TestAnEffectThatARunHasBeenAtSinceIsNotDecided(t *testing.T) {
	t.Parallel()
	s := staff(t, payouts, nil)
	form := s.form(t, "ann", decide, "act", "failed", "reason", why)
	for _, since := range []string{
		`update pawl.effects set sends = 2 where id = 1`,
		`update pawl.effects set sends = 1, state = 'intended' where id = 1`,
		`update pawl.effects set state = 'uncertain' where id = 1; update pawl.periods set state = 'running', ended_at = null where key = '2026-09-16'`,
	} {
		if _, err := s.pool.Exec(t.Context(), since); err != nil {
			t.Fatal(err)
		}
		got := s.post(t, "ann", decide, form)
		if got.status != http.StatusConflict {
			t.Errorf("after %s: %d, want 409", since, got.status)
		}
		got.has(t, "Nothing was decided.")
	}
	if got := one(t, s.pool, `select state || ' ' || (select count(*) from pawl.audit where action = 'effect_decide') from pawl.effects where id = 1`); got != "uncertain 0" {
		t.Errorf("it is %s", got)
	}
	s.get(t, "ann", "/ui/effects/3/decide").is(t, http.StatusConflict) // a run is at its period
	for _, absent := range []string{"99", "0", "x"} {
		s.get(t, "ann", "/ui/effects/"+absent+"/decide").is(t, http.StatusNotFound)
	}
}

func TestTheOverviewSaysNothingOfEffectsThatAreCertain(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	send(t, http.MethodGet, srv.URL+"/").lacks(t, "Uncertain effects")
}

func TestArtifactsAreListedWithTheirVersions(t *testing.T) {
	t.Parallel()
	srv, pool := open(t, payouts, nil)
	const path = "/ui/artifacts/statements%2Facme.csv"
	list := send(t, http.MethodGet, srv.URL+"/ui/artifacts")
	list.has(t, `href="`+path+`"`, "version 2", "3.0\u00a0KiB", ">abcdef02abcd<", "worker-2", "<code>6</code>")
	list.lacks(t, "worker-1")
	send(t, http.MethodGet, srv.URL+"/ui/artifacts?q=x").has(t, "No artifact fits.")
	send(t, http.MethodGet, srv.URL+path).has(t, "Version 2", "current", "Version 1", "superseded", "worker-1", "1.5\u00a0KiB")
	send(t, http.MethodGet, srv.URL+path+"?before=2").lacks(t, "Version 2")
	for at, want := range map[string]int{"/ui/artifacts/statements/acme.csv": 404, "/ui/artifacts/nothing": 404, path + "?before=x": 422} {
		if got := send(t, http.MethodGet, srv.URL+at); got.status != want {
			t.Errorf("%s = %d, want %d", at, got.status, want)
		}
	}
	if _, err := pool.Exec(t.Context(), `
insert into pawl.artifact_versions select 'many', n, lock, token, hash, size, file, holder, run, job, key, revision, operation, at, now(), null from pawl.artifact_versions, generate_series(1, 250) n where version = 1;
insert into pawl.artifacts select 'name' || n, version, lock, token, hash, size, file, holder, at from pawl.artifacts, generate_series(1, 250) n;
insert into pawl.artifact_versions select 'name' || n, version, lock, token, hash, size, file, holder, run, job, key, revision, operation, at, null, null from pawl.artifact_versions, generate_series(1, 250) n
 where name = 'statements/acme.csv' and version = 2`); err != nil {
		t.Fatal(err)
	}
	if all, pages := rows(t, srv.URL, "/ui/artifacts/many", `<span>Version `); pages != 3 || len(all) != 250 || all[0] != "250" {
		t.Errorf("%d pages with %d versions, want 3 with 250", pages, len(all))
	}
	if all, pages := rows(t, srv.URL, "/ui/artifacts?job=payout", `data-l="Size" class="n num">`); pages != 3 || len(all) != 251 {
		t.Errorf("%d pages with %d artifacts, want 3 with 251", pages, len(all))
	}
}

func TestAPeriodShowsItsShards(t *testing.T) {
	t.Parallel()
	srv, pool := open(t, payouts, nil)
	const path = "/ui/periods/payout/2026-09-17"
	page := send(t, http.MethodGet, srv.URL+path)
	page.has(t, "Shards</h2>", "1 of 3", "40 of 40", "2 of 40", `href="`+path+`?shards=running"`, "worker-2")
	runs := between(t, page.body, `id="s-1"`, `">b</a>`)
	_, runs, _ = strings.Cut(runs, `href="`)
	send(t, http.MethodGet, srv.URL+strings.ReplaceAll(runs, "&amp;", "&")).has(t, `id="r-00000000-0000-4000-8000-00000000000b"`)
	if got := strings.Count(send(t, http.MethodGet, srv.URL+path+"?shards=running").body, `id="s-`); got != 1 {
		t.Errorf("%d shards are running, want 1", got)
	}
	// What isn't done comes first, then what is, each in their order.
	if a, b, c := strings.Index(page.body, `id="s-0"`), strings.Index(page.body, `id="s-1"`), strings.Index(page.body, `id="s-2"`); b > c || c > a || b < 0 {
		t.Errorf("shards a, b and c stand at %d, %d and %d", a, b, c)
	}
	send(t, http.MethodGet, srv.URL+"/ui/periods/payout/2026-09-16").lacks(t, "Shards</h2>")
	if got := send(t, http.MethodGet, srv.URL+path+"?shards=lost"); got.status != http.StatusUnprocessableEntity {
		t.Errorf("%d, want 422", got.status)
	}
	if _, err := pool.Exec(t.Context(), `
insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, attempts, origin, parent, shard, shard_no)
select 'payout', '2026-09-17#' || n, 'job:payout#' || n, 'open', '2026-09-17Z', '2026-09-18Z', '2026-09-18Z', 0, 'shard', '2026-09-17', n::text, n from generate_series(3, 249) n`); err != nil {
		t.Fatal(err)
	}
	if all, pages := rows(t, srv.URL, path+"?shards=open", `id="s-`); pages != 3 || len(all) != 248 {
		t.Errorf("%d pages with %d open shards, want 3 with 248", pages, len(all))
	}
	eventually(t, "the page is read anew", func() bool { return strings.Contains(send(t, http.MethodGet, srv.URL+path).body, "1 of 250") })
	if all, pages := rows(t, srv.URL, path, `id="s-`); pages != 3 || len(all) != 250 || !strings.HasPrefix(all[249], `0"`) {
		t.Errorf("%d pages with %d shards, want 3 with 250, and the complete one the last", pages, len(all))
	}
}
