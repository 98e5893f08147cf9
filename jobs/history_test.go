package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

// history is a database in which something happened: settle ran twice for 2026-09-15, runs for 2026-09-16 and owes
// 2026-09-17; report is dead; one lease is stale; one write was refused; one delivery waits.
func history(t *testing.T) (*jobs.History, *pgxpool.Pool) {
	t.Helper()
	const rows = `
insert into pawl.schedules (job, app, definition, lock, watermark, next_at)
values ('settle', 'shop', '{"schedule": "0 2 * * *", "timezone": "Europe/Paris", "period": "day"}', 'job:settle',
        '2026-09-17 00:00Z', clock_timestamp() - interval '90 s'),
       ('report', 'shop', '{"schedule": "0 3 * * *"}', 'job:report', '2026-09-17 00:00Z', null);
insert into pawl.periods (job, key, lock, state, reason, start_at, end_at, scheduled_at, attempts, token, ended_at)
values ('settle', '2026-09-15', 'job:settle', 'complete', null, '2026-09-15Z', '2026-09-16Z', now() - interval '2 d', 2, 101, '2026-09-16 02:09Z'),
       ('settle', '2026-09-16', 'job:settle', 'running', null, '2026-09-16Z', '2026-09-17Z', now() - interval '1 d', 1, 102, null),
       ('settle', '2026-09-17', 'job:settle', 'open', null, '2026-09-17Z', '2026-09-18Z', now(), 0, null, null),
       ('report', '2026-09-16', 'job:report', 'dead', 'failed', '2026-09-16Z', '2026-09-17Z', now() - interval '1 d', 6, 7, now()),
       ('report', '2025-01-01', 'job:report', 'dead', 'failed', '2025-01-01Z', '2025-01-02Z', '2025-01-02Z', 6, 3, '2025-01-02Z');
insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, state, started_at, ended_at, done, total, error)
values ('00000000-0000-4000-8000-000000000001', 'settle', '2026-09-15', 1, 1, 'job:settle', 100, 'a/1', 'lost',
        '2026-09-16 02:00Z', '2026-09-16 02:05Z', 40, 100, 'lease expired'),
       ('00000000-0000-4000-8000-000000000002', 'settle', '2026-09-15', 1, 2, 'job:settle', 101, 'b/2', 'complete',
        '2026-09-16 02:05:30Z', '2026-09-16 02:09Z', 100, 100, null),
       ('00000000-0000-4000-8000-000000000003', 'settle', '2026-09-16', 1, 1, 'job:settle', 102, null, 'running',
        '2026-09-17 02:00Z', null, null, null, null);
insert into pawl.locks (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
values ('job:settle', 102, 1, gen_random_uuid(), 'b/2', '30 s', now(), now(), now() + interval '30 s'),
       ('job:report', 7, 1, gen_random_uuid(), 'c/3', '30 s', now() - interval '2 m', now() - interval '2 m', now() - interval '90 s'),
       ('free', 9, 1, null, null, null, now(), now(), null);
insert into pawl.refusals (lock, token, current, holder, late_by, target, statement)
values ('job:settle', 100, 101, 'a/1', '31 s', 'settlement', 'insert into settlement');
insert into pawl.river_job (state, queue, kind, args, max_attempts, scheduled_at)
values ('available', 'pawl', 'pawl.settle', '{}', 1, clock_timestamp() - interval '20 s'),
       ('available', 'pawl', 'pawl.settle', '{}', 1, clock_timestamp() + interval '1 h'),
       ('available', 'default', 'other', '{}', 1, clock_timestamp() - interval '1 h')`
	pool := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	return jobs.NewHistory(pool), pool
}

func TestRunsAreTheNewestFirst(t *testing.T) {
	t.Parallel()
	h, _ := history(t)
	runs, err := h.Runs(t.Context(), jobs.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var tokens []int64
	for _, r := range runs {
		tokens = append(tokens, r.Token)
	}
	if !slices.Equal(tokens, []int64{102, 101, 100}) {
		t.Errorf("tokens = %v, want 102 101 100", tokens)
	}
}

func TestRunFiltersChoose(t *testing.T) {
	t.Parallel()
	h, _ := history(t)
	for _, test := range []struct {
		filter jobs.RunFilter
		want   int
	}{
		{jobs.RunFilter{Job: "settle"}, 3},
		{jobs.RunFilter{Job: "settle", Key: "2026-09-15"}, 2},
		{jobs.RunFilter{State: "lost"}, 1},
		{jobs.RunFilter{Limit: 1}, 1},
		{jobs.RunFilter{Job: "nobody"}, 0},
	} {
		runs, err := h.Runs(t.Context(), test.filter)
		if err != nil || len(runs) != test.want || runs == nil {
			t.Errorf("Runs(%+v) = %d runs, %v, want %d", test.filter, len(runs), err, test.want)
		}
	}
}

func TestUnknownStatesAreErrors(t *testing.T) {
	t.Parallel()
	h := jobs.NewHistory(nil) // it never gets that far
	_, err := h.Runs(t.Context(), jobs.RunFilter{State: "done"})
	if !errors.Is(err, jobs.ErrState) || !strings.Contains(err.Error(), `run state "done"`) || !strings.Contains(err.Error(), "timed_out") {
		t.Errorf("Runs: %v, want the state and those that exist", err)
	}
	if _, err := h.Periods(t.Context(), jobs.PeriodFilter{State: "late"}); !errors.Is(err, jobs.ErrState) {
		t.Errorf("Periods: %v, want ErrState", err)
	}
}

// The shape is a promise to scripts: every name is there, what isn't known is null or empty, times are UTC.
func TestRecordsHaveTheirJSONShape(t *testing.T) {
	t.Parallel()
	h, _ := history(t)
	runs, err := h.Runs(t.Context(), jobs.RunFilter{State: "running"})
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs = %v, %v", runs, err)
	}
	same(t, runs[0], `{"id":"00000000-0000-4000-8000-000000000003","job":"settle","key":"2026-09-16","revision":1,"attempt":1,`+
		`"state":"running","lock":"job:settle","token":102,"holder":"","started_at":"2026-09-17T02:00:00Z","ended_at":null,`+
		`"done":null,"total":null,"error":""}`)
	runs, err = h.Runs(t.Context(), jobs.RunFilter{State: "lost"})
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs = %v, %v", runs, err)
	}
	same(t, runs[0], `{"id":"00000000-0000-4000-8000-000000000001","job":"settle","key":"2026-09-15","revision":1,"attempt":1,`+
		`"state":"lost","lock":"job:settle","token":100,"holder":"a/1","started_at":"2026-09-16T02:00:00Z",`+
		`"ended_at":"2026-09-16T02:05:00Z","done":40,"total":100,"error":"lease expired"}`)
	periods, err := h.Periods(t.Context(), jobs.PeriodFilter{State: "complete"})
	if err != nil || len(periods) != 1 {
		t.Fatalf("periods = %v, %v", periods, err)
	}
	periods[0].ScheduledAt = time.Date(2026, 9, 16, 2, 0, 0, 0, time.UTC)
	same(t, periods[0], `{"job":"settle","key":"2026-09-15","revision":1,"state":"complete","reason":"",`+
		`"start":"2026-09-15T00:00:00Z","end":"2026-09-16T00:00:00Z","scheduled_at":"2026-09-16T02:00:00Z","attempts":2,`+
		`"completed_at":"2026-09-16T02:09:00Z","token":101,`+
		`"origin":"schedule","waits":"","blocked_by":"","ticks":1,"last_at":null,"not_before":null,"due_at":null,"params":{}}`)
}

func same(t *testing.T, v any, want string) {
	t.Helper()
	got, err := json.Marshal(v)
	if err != nil || string(got) != want {
		t.Errorf("JSON is\n%s, %v\nwant\n%s", got, err, want)
	}
}

func TestADeadPeriodIsNotCompleted(t *testing.T) {
	t.Parallel()
	h, _ := history(t)
	periods, err := h.Periods(t.Context(), jobs.PeriodFilter{Job: "report", State: "dead"})
	if err != nil || len(periods) != 2 {
		t.Fatalf("periods = %v, %v", periods, err)
	}
	if p := periods[0]; p.Key != "2026-09-16" || p.CompletedAt != nil || p.Reason != "failed" {
		t.Errorf("newest = %+v, want 2026-09-16 with its reason, not completed", p)
	}
}

func TestJobsTellTheirSchedule(t *testing.T) {
	t.Parallel()
	h, _ := history(t)
	list, err := h.Jobs(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("jobs = %v, %v", list, err)
	}
	if list[0].Job != "report" || list[0].NextAt != nil {
		t.Errorf("first = %+v, want report, due never", list[0])
	}
	if j := list[1]; j.App != "shop" || j.Lock != "job:settle" || j.Schedule != "0 2 * * *" || j.Zone != "Europe/Paris" || j.Period != "day" ||
		j.NextAt == nil || j.Watermark.Location() != time.UTC || j.RetiredAt != nil {
		t.Errorf("second = %+v", j)
	}
}

func TestCountsSayWhatThereIs(t *testing.T) {
	t.Parallel()
	h, _ := history(t)
	c, err := h.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		if got < want || got > want+30 {
			t.Errorf("%s = %v s, want about %v", what, got, want)
		}
	}
	near("watermark age", c.WatermarkAge, 90)
	near("oldest delivery", c.QueueOldest, 20)
	c.Now, c.WatermarkAge, c.QueueOldest = time.Time{}, 0, 0
	want := jobs.Counts{Held: 1, Stale: 1, Open: 1, Running: 1, Dead: 1, Refusals: 1, QueueDepth: 1}
	if c != want {
		t.Errorf("counts = %+v, want %+v", c, want)
	}
}

// A counter that fell when history is pruned would look like many refusals at once.
// And what log mode let pass is no refusal, so a table under trial alerts nobody.
func TestRefusalsDoNotFallWhenHistoryIsPruned(t *testing.T) {
	t.Parallel()
	h, pool := history(t)
	const more = `insert into pawl.refusals (lock) values ('x'), ('y')`
	const passed = `insert into pawl.refusals (lock, passed, nth) values ('x', true, null)`
	const prune = `delete from pawl.refusals where id < 3`
	for _, sql := range []string{passed, more, passed, prune} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := h.Counts(t.Context()); err != nil || c.Refusals != 3 {
		t.Errorf("refusals = %d, %v, want 3", c.Refusals, err)
	}
}

func TestTheCollectorReadsTheDatabase(t *testing.T) {
	t.Parallel()
	h, _ := history(t)
	reg := prometheus.NewRegistry()
	reg.MustRegister(jobs.NewCollector(h))
	if families, err := reg.Gather(); err != nil || len(families) != 5 {
		t.Errorf("collector has %d metrics, %v, want 5", len(families), err)
	}
}

// Somebody holds a table, so the question would wait for ever: it ends by itself, and says so.
func TestASlowQuestionEnds(t *testing.T) {
	t.Parallel()
	h, pool := history(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `lock table pawl.runs in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := h.Runs(t.Context(), jobs.RunFilter{}); err == nil || !strings.Contains(err.Error(), "jobs: read runs") {
		t.Errorf("Runs = %v, want an error that says what was read", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v, want about 2 s", took)
	}
}
