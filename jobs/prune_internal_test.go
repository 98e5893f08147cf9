package jobs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// pruning is a run of pawl-prune that is under way.
func pruning(t *testing.T) (*Run, *pgxpool.Pool) {
	t.Helper()
	r, pool := opened(t)
	owes(t, pool, "1")
	run := r.mustStart(t, pool)
	_, run.kept = r.repo.Keep(t.Context(), run.lease)
	t.Cleanup(run.kept.Stop)
	return run, pool
}

// fill writes rows with a mark of which may go and which stay: some days old, on both sides of what is kept.
func fill(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, sql := range []string{
		`insert into pawl.schedules (job, app, definition, lock, watermark) values ('h', 'a', '{}', 'H', now()), ('behind', 'a', '{}', 'B', now() - interval '410 days')`,
		`insert into pawl.runs (id, job, key, revision, attempt, lock, token, state, started_at, ended_at)
		 select gen_random_uuid(), 'h', d.keep, 1, 1, 'r' || d.keep, 1, 'complete', now() - d.days * interval '1 day', case when d.keep <> 'stay-runs' then now() - d.days * interval '1 day' end
		   from (values ('go', 91), ('stay', 89), ('stay-runs', 91)) d (keep, days)`,
		`insert into pawl.tenures (lock, token, grant_id, ended_at, how)
		 select d.keep, 1, gen_random_uuid(), now() - d.days * interval '1 day', 'released' from (values ('go', 401), ('stay', 399)) d (keep, days)`,
		`insert into pawl.refusals (lock, at) select d.keep, now() - d.days * interval '1 day' from (values ('go', 403), ('go', 402), ('stay-last', 401)) d (keep, days)`,
		`insert into pawl.refusals (lock, at, passed, nth) values ('go', now() - interval '401 days', true, null), ('stay', now(), true, null)`,
		// Requests: never granted; lease over for long; over since yesterday; alive.
		`insert into pawl.idempotency (key, lock, idempotency_key, body, grant_id, at)
		 select 'k', d.keep, d.keep, '', ('00000000-0000-0000-0000-00000000000' || d.n)::uuid, now() - d.days * interval '1 day'
		   from (values (1, 'go-none', 3), (2, 'go-over', 30), (3, 'stay-over', 30), (4, 'stay-alive', 30), (5, 'stay-new', 1), (6, 'go-stale', 30)) d (n, keep, days)`,
		`insert into pawl.tenures (lock, token, grant_id, ended_at, how) values
		 ('go-over', 2, '00000000-0000-0000-0000-000000000002', now() - interval '3 days', 'released'),
		 ('stay-over', 2, '00000000-0000-0000-0000-000000000003', now() - interval '1 day', 'released')`,
		`insert into pawl.locks (name, token, incarnation, grant_id, expires_at, renewed_at, acquired_at) values
		 ('stay-alive', 2, 1, '00000000-0000-0000-0000-000000000004', now() + interval '1 h', now(), now()),
		 ('go-stale', 2, 1, '00000000-0000-0000-0000-000000000006', now() - interval '20 days', now(), now())`,
		`insert into pawl.events (kind, subject, at) values ('dead', 'go', now() - interval '91 days'), ('dead', 'stay', now() - interval '89 days')`,
		`insert into pawl.alerts (event, channel, at) values (gen_random_uuid(), 'go', now() - interval '91 days'), (gen_random_uuid(), 'stay', now() - interval '89 days')`,
		`insert into pawl.artifact_versions (name, version, lock, token, hash, size, file, holder, run, job, key, revision, operation, at, superseded_at, removed_at)
		 select d.keep, 1, '', 1, '', 0, '', '', gen_random_uuid(), 'h', '', 1, gen_random_uuid(), now(), now() - interval '900 days', now() - d.days * interval '1 day'
		   from (values ('go', 401), ('stay', 399), ('stay-there', null)) d (keep, days)`,
		`insert into pawl.replicas (holder, app, jobs, seen_at) values ('go', 'a', '{}', now() - interval '2 days'), ('stay', 'a', '{}', now())`,
		// Periods: the job says whether they may go.
		`insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, last_at, ended_at, waits)
		 select d.job, d.key, d.keep, d.state, now(), now(), now() - d.days * interval '1 day', now() - d.last * interval '1 day',
		        case when d.state <> 'open' then now() end, d.waits
		   from (values ('h', '2020-01-01T02+01:00', 'go-hour', 'complete', 401, null, null), ('h', '2020-01-01T02:00:00Z', 'go-tick', 'missed', 401, null, null),
		     ('h', '01HZXK3V9Q8Y7T6R5E4W3Q2A1B', 'go-manual', 'complete', 401, null, null), ('h', '01HZXK3V9Q8Y7T6R5E4W3Q2A1C', 'stay-asked', 'dead', 401, null, null), ('h', '2020-01-02T02:00:00Z', 'stay-new', 'complete', 399, null, null),
		     ('h', '2020-01-01', 'stay-day', 'complete', 4000, null, null), ('h', '2020-W01', 'stay-week', 'complete', 4000, null, null),
		     ('h', '2020-01', 'stay-month', 'complete', 4000, null, null), ('h', '2020-01-03T02:00:00Z', 'stay-open', 'open', 500, null, null),
		     ('h', '2020-01-04T02:00:00Z', 'stay-stretch', 'held', 500, 10, null), ('h', '2020-01-05T02:00:00Z', 'stay-decision', 'dead', 500, null, 'decision'),
		     ('behind', '2020-01-06T02:00:00Z', 'stay-watermark', 'complete', 405, null, null), ('behind', '2020-01-07T02:00:00Z', 'go-behind', 'complete', 415, null, null),
		     ('h', '2020-01-08T02:00:00Z', 'stay-needed', 'complete', 500, null, null), ('needs', '2020-01-08T02:00:00Z', 'stay-needs', 'open', 500, null, 'needs')
		     ) d (job, key, keep, state, days, last, waits)`,
		`insert into pawl.checkpoints (job, key, revision, token, operation) values
		 ('h', '2020-01-01T02:00:00Z', 1, 1, gen_random_uuid()), ('h', '2020-01-02T02:00:00Z', 1, 1, gen_random_uuid())`,
		// Of periods that are gone, and of one that has another revision.
		`insert into pawl.effects (job, key, revision, effect, idempotency_key, request, run, token, operation, at, state, ended_at)
		 select 'h', d.key, 1, d.keep, d.keep, '1', gen_random_uuid(), 1, gen_random_uuid(), now() - d.days * interval '1 day', d.state, case when d.state = 'done' then now() end
		   from (values ('01HZXK3V9Q8Y7T6R5E4W3Q2A1B', 'go', 'done', 401), ('01HZXK3V9Q8Y7T6R5E4W3Q2A1C', 'stay-unknown', 'uncertain', 401),
		     ('2020-01-01', 'stay-day', 'done', 4000), ('2020-01-03T02:00:00Z', 'stay-open', 'done', 500), ('gone', 'stay-new', 'done', 399)) d (key, keep, state, days)`,
		`insert into pawl.outbox (job, period, key, seq, body, at)
		 select 'h', d.period, d.keep, 1, '1', now() - d.days * interval '1 day'
		   from (values ('01HZXK3V9Q8Y7T6R5E4W3Q2A1B', 'go', 401), ('2020-01-03T02:00:00Z', 'stay-open', 500), ('gone', 'stay-new', 399)) d (period, keep, days)`,
		`insert into pawl.audit (at, actor, action) values (now() - interval '4000 days', 'a', 'b')`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func TestPruningDeletesWhatIsOldEnoughAndNothingElse(t *testing.T) {
	t.Parallel()
	run, pool := pruning(t)
	fill(t, pool)
	for range 2 { // the second time there is nothing to do
		if err := prune(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ table, col, want string }{
			{"runs", "key", "stay stay-runs"},
			{"tenures", "lock", "go-over stay stay-over"},
			{"refusals", "lock", "stay stay-last"},
			{"idempotency", "lock", "stay-alive stay-new stay-over"},
			{"events", "subject", "stay"},
			{"alerts", "channel", "stay"},
			{"replicas", "holder", "stay"},
			{"effects", "effect", "stay-day stay-new stay-open stay-unknown"},
			{"outbox", "key", "stay-new stay-open"},
			{"artifact_versions", "name", "stay stay-there"},
			{"periods", "lock", "stay-asked stay-day stay-decision stay-month stay-needed stay-needs stay-new stay-open stay-stretch stay-watermark stay-week"},
		} {
			left := texts(t, pool, fmt.Sprintf(`select %s from pawl.%s where %[1]s ~ '^(go|stay)' order by 1`, c.col, c.table))
			if got := strings.Join(left, " "); got != c.want {
				t.Errorf("%s: %s are left, want %s", c.table, got, c.want)
			}
		}
	}
	if n := exec(t, pool, `select count(*) from pawl.checkpoints`); n != 1 {
		t.Errorf("%d checkpoints are left, want that of the period that stays", n)
	}
	if n := exec(t, pool, `select count(*) from pawl.audit`); n != 1 {
		t.Error("the audit was pruned")
	}
	if n := exec(t, pool, `select max(nth) from pawl.refusals`); n != 3 {
		t.Errorf("the counter of refusals fell to %d", n)
	}
}

func TestTokensGrowAfterTheirLockWasPruned(t *testing.T) {
	t.Parallel()
	run, pool := pruning(t)
	repo := run.runner.repo
	l, err := repo.Acquire(t.Context(), "idle", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	// Far ahead of the clock, so that only the floor can tell.
	high := exec(t, pool, `update pawl.locks set token = token + 3600000000, renewed_at = now() - interval '401 days' where name = 'idle' returning token`)
	exec(t, pool, `insert into pawl.locks (name, token, incarnation, renewed_at) values ('rests', 1, 1, now() - interval '399 days') returning 1`)
	if err := prune(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if left := strings.Join(texts(t, pool, `select name from pawl.locks order by name`), " "); left != "L rests" {
		t.Fatalf("locks %s are left, want the run's own and the one of 399 days", left)
	}
	if l, err = repo.Acquire(t.Context(), "idle", time.Minute); err != nil || l.Token.Seq <= high {
		t.Errorf("token %d, %v: before it was pruned it had %d", l.Token.Seq, err, high)
	}
}

func TestPruningTakesSmallBatchesAndWaitsForNobody(t *testing.T) {
	t.Parallel()
	run, pool := pruning(t)
	const rows = pruneBatch*2 + 500
	exec(t, pool, `with x as (insert into pawl.events (kind, subject, at) select 'dead', n, now() - interval '100 days' from generate_series(1, $1::int) n returning 1)
	  select count(*) from x`, rows)
	for _, sql := range []string{
		`create table batches (xid bigint, n bigint)`,
		`create function count_batch() returns trigger language plpgsql as $$ begin insert into batches select txid_current(), count(*) from gone; return null; end $$`,
		`create trigger counts after delete on pawl.events referencing old table as gone for each statement execute function count_batch()`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	held, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Rollback(context.Background())
	exec(t, held, `select 1 from pawl.events where subject = '7' for update`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := prune(ctx, run); err != nil {
		t.Fatal(err)
	}
	if left := strings.Join(texts(t, pool, `select subject from pawl.events`), " "); left != "7" {
		t.Errorf("left are %.60s, want the one that is locked", left)
	}
	if n := exec(t, pool, `select count(distinct xid) from batches where n > 0`); n != 3 {
		t.Errorf("%d transactions for %d rows", n, rows)
	}
	if n := exec(t, pool, `select max(n) from batches`); n != pruneBatch {
		t.Errorf("%d rows in one transaction", n)
	}
}

func TestPruningStopsWhenItsLeaseIsLost(t *testing.T) {
	t.Parallel()
	run, pool := pruning(t)
	exec(t, pool, `insert into pawl.events (kind, subject, at) values ('dead', 'x', now() - interval '100 days') returning 1`)
	exec(t, pool, `update pawl.locks set token = token + 1, grant_id = gen_random_uuid() where name = 'L' returning 1`) // a successor
	if err := prune(t.Context(), run); !errors.Is(err, fence.ErrStale) && !errors.Is(err, fence.ErrNotHeld) {
		t.Errorf("prune = %v, want a refusal", err)
	}
	if n := events(t, pool, "dead"); n != 1 {
		t.Error("it has deleted without a lease")
	}
}

var scans = regexp.MustCompile(`Seq Scan on (\w+)`)

func TestPruningAndLookingUseIndexes(t *testing.T) {
	t.Parallel()
	_, pool := opened(t)
	exec(t, pool, `with x as (insert into pawl.events (kind, subject, at) select 'dead', n, now() - n * interval '20 min' from generate_series(1, 6000) n returning 1)
	  select count(*) from x`)
	exec(t, pool, `with x as (insert into pawl.refusals (at, lock, token) select now() - n * interval '20 min', 'l' || n % 50, n % 500 from generate_series(1, 6000) n returning 1)
	  select count(*) from x`)
	exec(t, pool, `with x as (insert into pawl.tenures (lock, token, grant_id, ended_at, how)
	    select 'l' || n % 50, n, gen_random_uuid(), now() - n * interval '20 min', (array['released', 'released', 'expired'])[n % 3 + 1] from generate_series(1, 6000) n returning 1)
	  select count(*) from x`)
	if _, err := pool.Exec(t.Context(), `analyze pawl.events, pawl.refusals, pawl.tenures`); err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	for _, sql := range []string{`set local enable_seqscan = off`, `set local jit = off`} {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	explain := func(sql, with string, args ...any) {
		t.Helper()
		sql = regexp.MustCompile(`\$(\d)`).ReplaceAllStringFunc(sql, func(p string) string { return fmt.Sprint(args[p[1]-'1']) })
		rows, err := tx.Query(t.Context(), `explain `+sql)
		if err != nil {
			t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		plan := strings.Join(all, "\n")
		if m := scans.FindStringSubmatch(plan); m != nil && m[1] != "replicas" { // of which there are few
			t.Errorf("%s: reads all of %s:\n%s", sql, m[1], plan)
		}
		index, column, _ := strings.Cut(with, " ") // searched by it, not only read in its order
		if !regexp.MustCompile(index + `\b.*\n\s+Index Cond: .*\b` + column + ` [<>=]`).MatchString(plan) {
			t.Errorf("%s: doesn't search %s:\n%s", sql, with, plan)
		}
	}
	index := map[string]string{
		"pawl.tenures": "tenures_ended ended_at", "pawl.refusals": "refusals_at at", "pawl.idempotency": "idempotency_at at",
		"pawl.events": "events_at at", "pawl.alerts": "alerts_at at", "pawl.artifact_versions": "artifact_versions_removed removed_at",
	}
	for _, a := range pruned() {
		if index[a.table] == "" && a.table != "pawl.replicas" {
			t.Errorf("%s has no index here", a.table)
		}
		if exec(t, pool, `select (to_regclass($1) is not null)::int`, a.table) == 1 && index[a.table] != "" {
			explain(a.sql, index[a.table], pruneBatch)
		}
	}
	explain(pruneOutputsSQL, "outputs_job at", pruneBatch, "'h'", 3600_000)
	explain(pruneRunsSQL, "runs_ended started_at", pruneBatch, "'h'", 3600_000)
	explain(prunePeriodsSQL, "periods_job scheduled_at", pruneBatch, "'h'")
	explain(pruneEffectsSQL, "effects_job at", pruneBatch, "'h'")
	explain(pruneOutboxSQL, "outbox_job at", pruneBatch, "'h'")
	explain(lateSQL, "periods_late late_at")
	explain(overdueSQL, "periods_due due_at")
	explain(atRiskSQL, "periods_due due_at")
	explain(staleClaimSQL, "tenures_(?:ended|stale) ended_at", 600)
	explain(refusalSQL, "refusals_at at", 600)
	explain(unclaimedSQL, "river_job_prioritized_fetching_index state")
	explain(queueAlertsSQL, "events_at at", "'a/ops'", "'{dead}'", "'a'", "'ops'", "'kind'")
}

func TestEveryRunnerBringsThePruningJobUnlessItIsToldNotTo(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	fill(t, pool)
	for _, app := range []string{"one", "two"} {
		stop := running(t, Config{Pool: pool, App: app})
		pgtest.Eventually(t, 10*time.Second, "the job is registered", func() bool {
			return exec(t, pool, `select count(*) from pawl.schedules where job = $1 and app = $2`, pruneName, ownApp) == 1
		})
		stop()
	}
	stop := running(t, Config{Pool: pool})
	defer stop()
	if _, err := Trigger(t.Context(), pool, pruneName, TriggerConfig{Actor: "test"}); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, 20*time.Second, "it has run", func() bool {
		return exec(t, pool, `select count(*) from pawl.periods where job = $1 and state = 'complete'`, pruneName) == 1
	})
	if n := exec(t, pool, `select count(*) from pawl.events where subject = 'go'`); n != 0 {
		t.Error("it has deleted nothing")
	}
	other := pgtest.New(t)
	defer running(t, Config{Pool: other, NoPrune: true})()
	pgtest.Eventually(t, 10*time.Second, "the other runner is up", func() bool { return exec(t, other, `select count(*) from pawl.replicas`) == 1 })
	if n := exec(t, other, `select count(*) from pawl.schedules`); n != 0 {
		t.Error("a runner that is told not to has the job")
	}
	r, err := New(Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Add(Job{Name: pruneName, Schedule: "@daily", Func: prune}); err == nil {
		t.Error("its name may be used for another job")
	}
}

// running starts a runner without jobs of the test's; the function that it returns stops it.
func running(t *testing.T, cfg Config) func() {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
