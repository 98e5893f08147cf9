package jobs_test

import (
	"slices"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

func TestTheQueueTellsWhatWaitsAndWhoWorks(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	h := jobs.NewHistory(pool)
	q, err := h.Queue(t.Context())
	if err != nil || q.Depth != 0 || q.ByJob == nil || q.Replicas == nil {
		t.Errorf("with no rows: %+v, %v", q, err)
	}
	for i, set := range []string{
		"attempts = 1", "attempts = 2, not_before = now() + interval '1 h'", "not_before = now() + interval '1 h'", "waits = 'paused'",
		"not_before = now() - interval '1 min'", "lock = 'an old name'",
	} {
		putPeriod(t, pool, "a", string(rune('a'+i)), "open", i+1, set)
	}
	putPeriod(t, pool, "b", "x", "running", 1, "")
	putPeriod(t, pool, "b", "y", "open", 0, "scheduled_at = now() + interval '1 h'")
	putPeriod(t, pool, "c", "x", "complete", 1, "")
	puts(t, pool, `insert into pawl.replicas (holder, app, jobs, seen_at) values ('here', 'shop', '{a,b}', now()), ('gone', 'shop', '{}', now() - interval '1 min')`,
		`insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, ended_at) select gen_random_uuid(), 'b', n::text, 1, 1, 'L' || n, n, 'here', case when n > 2 then now() end from generate_series(1, 4) n`)
	if q, err = h.Queue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if q.Depth != 4 || q.Running != 2 || q.Retrying != 1 || q.Scheduled != 1 || q.Oldest.Round(time.Minute) != 6*time.Hour {
		t.Errorf("queue: %+v", q)
	}
	if len(q.ByJob) != 2 || q.ByJob[0].Job != "a" || q.ByJob[0].Waiting != 3 || q.ByJob[1] != (jobs.QueueJob{Job: "b", Waiting: 1, Running: 2}) {
		t.Errorf("by job: %+v", q.ByJob)
	}
	if len(q.Replicas) != 2 || q.Replicas[0].Holder != "here" || !q.Replicas[0].Live || q.Replicas[0].Running != 2 ||
		!slices.Equal(q.Replicas[0].Jobs, []string{"a", "b"}) || q.Replicas[1].Live || q.Replicas[1].Running != 0 {
		t.Errorf("replicas: %+v", q.Replicas)
	}
}

// A long backlog of one lock hides no other's, and is not read to its end.
func TestABacklogIsCountedUpToItsCap(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	putJob(t, pool, "a", daily)
	puts(t, pool, `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at) select 'a', n::text, 'job:a', now(), now(), now() - n * interval '1 s' from generate_series(1, 10500) n`,
		`insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at) select 'b', n::text, 'job:b#' || n, now(), now(), now() from generate_series(1, 3) n`)
	h := jobs.NewHistory(pool)
	q, err := h.Queue(t.Context())
	if err != nil || q.Depth != 10001 || len(q.ByJob) != 2 || q.ByJob[0].Waiting != 10001 || q.ByJob[1].Waiting != 3 {
		t.Errorf("depth %d, by job %+v, %v", q.Depth, q.ByJob, err)
	}
	if s, err := h.Job(t.Context(), "a"); err != nil || s.Open != 10001 {
		t.Errorf("open %d, %v", s.Open, err)
	}
}
