package jobs_test

import (
	"testing"

	"pawl/jobs"
)

// longParts are 60,000 effects and 60,000 messages of the jobs of a long history, of which few are open or dead; artifacts of
// 3,000 names, with 20 versions each; and a period in 10,000 shards.
var longParts = []string{
	`insert into pawl.effects (job, key, revision, effect, idempotency_key, state, request, run, token, operation, ended_at)
select p.job, p.key, 1, 'e', p.job || ':' || p.key || '/e', x.state, '1', gen_random_uuid(), 1, gen_random_uuid(), case when x.state <> 'uncertain' then now() end
  from pawl.periods p, lateral (select case p.token % 500 when 7 then 'uncertain' when 8 then 'failed' when 9 then 'dropped' else 'done' end as state) x`,
	`insert into pawl.effect_differences (job, idempotency_key, kind, effect)
select job, idempotency_key, 'absent', id from pawl.effects where id % 400 = 0`,
	`insert into pawl.schedules (job, app, definition, lock, watermark) select 'mail' || n, 'shop', '{"schedule": "@manual", "outbox": true}', 'job:mail' || n, now() from generate_series(1, 2) n`,
	`insert into pawl.outbox (job, period, key, seq, body, at)
select 'mail' || 1 + n % 2, 'M' || lpad(n::text, 9, '0'), 'customer ' || n % 200, n / 200, '1', now() - interval '90 d' + n * interval '1 min' from generate_series(1, 60000) n`,
	`insert into pawl.periods (job, key, lock, origin, state, reason, waits, start_at, end_at, scheduled_at, ended_at)
select m.job, m.period, 'job:' || m.job || '#' || m.key, 'outbox', x.state, case x.state when 'dead' then 'failed' end, case x.state when 'dead' then 'decision' when 'open' then x.waits end,
       m.at, m.at, m.at, case when x.state <> 'open' then m.at end
  from pawl.outbox m, lateral (select case when m.seq < 290 then 'complete' when m.key in ('customer 7', 'customer 8') then case m.seq when 290 then 'dead' else 'open' end
       when m.seq < 299 then 'complete' else 'open' end as state, case when m.key in ('customer 7', 'customer 8') then 'dead' end as waits) x`,
	`insert into pawl.artifact_versions (name, version, lock, token, hash, size, file, holder, run, job, key, revision, operation, at, superseded_at)
select 'statements/' || lpad(n::text, 5, '0'), v, 'job:j001', v, 'h', 1, 'f' || n || '.' || v, 'h', gen_random_uuid(), 'j' || lpad((1 + n % 40)::text, 3, '0'), 'k', 1, gen_random_uuid(), now(),
       case when v < 20 then now() end from generate_series(1, 3000) n, generate_series(1, 20) v`,
	`insert into pawl.artifacts (name, version, lock, token, hash, size, file, holder, at)
select name, version, lock, token, hash, size, file, holder, at from pawl.artifact_versions where superseded_at is null`,
	`insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, ended_at, origin, parent, shard, shard_no, run)
select 'j001', 'fanned#' || n, 'job:j001#' || n, case when n % 100 = 0 then 'running' else 'complete' end, now(), now(), now(), case when n % 100 > 0 then now() end, 'shard', 'fanned', n::text, n,
       gen_random_uuid() from generate_series(0, 9999) n`,
	`analyze`,
}

func TestNoListOfEffectsMessagesOrArtifactsGoesThroughTheHistory(t *testing.T) {
	t.Parallel()
	pool := long(t)
	for _, sql := range longParts {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	h, a := traced(t, pool)
	for name, f := range map[string]jobs.EffectFilter{
		"all": {}, "job": {Job: "j001"}, "period": {Job: "j001", Key: "x"}, "id": {ID: 7}, "uncertain": {State: "uncertain"}, "open": {State: "open"}, "failed": {State: "failed"},
		"dropped": {State: "dropped"}, "done": {State: "done"}, "job's done": {Job: "j001", State: "done"}, "job's failed": {Job: "j001", State: "failed"}, "nobody": {Job: "nobody"}, "before": {Before: 50000},
		"job before": {Job: "j001", Before: 50000},
	} {
		cheap(t, pool, a, "effects "+name, 300, func() error { _, err := h.Effects(t.Context(), f); return err })
	}
	for name, f := range map[string]jobs.DifferenceFilter{"all": {}, "job": {Job: "j001"}, "nobody": {Job: "nobody"}} {
		cheap(t, pool, a, "differences "+name, 300, func() error { _, err := h.Differences(t.Context(), f); return err })
	}
	for name, f := range map[string]jobs.MessageFilter{
		"all": {}, "dead": {State: "dead"}, "waiting": {State: jobs.MessageWaiting}, "dead of one": {State: "dead", Outbox: "mail1"}, "waiting of one": {State: jobs.MessageWaiting, Outbox: "mail1"},
		"waiting of a key": {State: jobs.MessageWaiting, MessageKey: "customer 7"}, "nobody's": {State: "dead", Outbox: "nobody"}, "one": {State: "dead", Outbox: "mail1", Key: "M000000007"},
	} {
		cheap(t, pool, a, "messages "+name, 900, func() error { _, err := h.Messages(t.Context(), f); return err })
	}
	for name, f := range map[string]jobs.ArtifactFilter{
		"all": {}, "prefix": {Prefix: "statements/02"}, "nothing": {Prefix: "x"}, "job": {Job: "j001"}, "nobody": {Job: "nobody"}, "after": {After: "statements/01000"}, "job and prefix": {Job: "j002", Prefix: "statements/02"},
	} {
		cheap(t, pool, a, "artifacts "+name, 300, func() error { _, err := h.Artifacts(t.Context(), f); return err })
	}
	cheap(t, pool, a, "versions", 300, func() error {
		_, err := h.ArtifactVersions(t.Context(), "statements/00007", 0, 10)
		return err
	})
	cheap(t, pool, a, "shards", 10_001, func() error {
		p, err := h.ShardPage(t.Context(), "j001", "fanned", jobs.ShardFilter{Limit: 200})
		if err == nil && (p.All != 10_000 || len(p.Rows) != 200) {
			t.Errorf("%d rows of %d", len(p.Rows), p.All)
		}
		return err
	})
	if list, err := h.Messages(t.Context(), jobs.MessageFilter{State: "dead"}); err != nil || len(list) != 2 || list[0].Behind != 9 {
		t.Errorf("%d dead messages, %v", len(list), err)
	}
}
