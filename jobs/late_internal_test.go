package jobs

import (
	"slices"
	"testing"
	"time"
)

func TestAPeriodThatCouldNotStartInTimeIsMissed(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 2, Job{StartWithin: 1000 * time.Hour})
	exec(t, pool, `update pawl.periods set start_by = now() - interval '1 s' where key = $1 returning 1`, keys[0])
	if run := r.begin(t.Context(), "L", 0); run != nil {
		t.Fatalf("%s started too late", run.Period.Key)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where key = $1 and state = 'missed' and reason = 'too_late' and ended_at is not null`, keys[0]); n != 1 {
		t.Errorf("%s is %s", keys[0], state(t, pool, keys[0]))
	}
	if n := exec(t, pool, ruleSQL); n != 1 {
		t.Errorf("%d live deliveries for the day after", n)
	}
	// A hand-over doesn't start it either.
	run := r.mustStart(t, pool)
	r.planAt(t, "j", time.Now().AddDate(0, 0, 1))
	exec(t, pool, `update pawl.periods set start_by = now() - interval '1 s' where state = 'open' returning 1`)
	if next, err := r.handover(t.Context(), []*Run{run}); err != nil || next[0] != nil {
		t.Errorf("handover = %v, %v", next, err)
	}
	// A retry isn't a start.
	exec(t, pool, `update pawl.periods set start_by = now() - interval '1 s' where state = 'running' returning 1`)
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateFailed}}); err != nil || !ok[0] {
		t.Fatal(ok, err)
	}
	if run := r.begin(t.Context(), "L", 0); run == nil || run.Attempt != 2 {
		t.Error("the retry was refused")
	}
}

func TestWhatWaitsTooLongIsMissed(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 1, Job{StartWithin: 1000 * time.Hour})
	exec(t, pool, `update pawl.periods set waits = 'needs', start_by = now() - interval '1 s' returning 1`)
	if err := r.backstop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := state(t, pool, keys[0]); got != "missed" {
		t.Errorf("the period is %s", got)
	}
}

func TestTicksWaitForTheirJitterAndKeepTheirTime(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	j := r.stored(t, Job{Name: "day", Schedule: "15 2 * * *", Jitter: time.Hour, LateAfter: 5 * time.Minute, DueBy: "06:00"}, utcTime(t, "2026-09-10T00:00Z"))
	r.planAt(t, "day", utcTime(t, "2026-09-12T12:00Z"))
	s, err := j.definition("").parse()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"2026-09-10", "2026-09-11", "2026-09-12"} {
		at := utcTime(t, key+"T02:15Z")
		starts := at.Add(s.JitterOf("day", key))
		if n := exec(t, pool, `select count(*) from pawl.periods where key = $1 and scheduled_at = $2 and not_before = $3 and late_at = $4 and due_at = $5`,
			key, at, starts, starts.Add(5*time.Minute), utcTime(t, key+"T06:00Z")); n != 1 {
			t.Errorf("%s: %q", key, texts(t, pool, `select to_json(p)::text from pawl.periods p where key = $1`, key))
		}
	}
}

func TestOverlapSkipRecordsWhatBlockedTheTick(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.stored(t, Job{Name: "m", Schedule: "*/15 * * * *", Overlap: OverlapSkip}, utcTime(t, "2026-09-16T00:00Z"))
	r.planAt(t, "m", utcTime(t, "2026-09-16T00:16Z"))
	for _, now := range []string{"2026-09-16T00:31Z", "2026-09-16T00:46Z", "2026-09-16T01:01Z"} {
		r.planAt(t, "m", utcTime(t, now))
	}
	exec(t, pool, `update pawl.periods set state = 'complete', ended_at = now() where state = 'open' returning 1`)
	r.planAt(t, "m", utcTime(t, "2026-09-16T01:16Z"))
	want := []string{"complete - 16T00:15 16T00:15 1", "skipped overlap 16T00:30 16T01:00 3", "open - 16T01:15 16T01:15 1"}
	if got := texts(t, pool, rowsSQL, "m"); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := texts(t, pool, `select blocked_by from pawl.periods where state = 'skipped'`); !slices.Equal(got, []string{"m 2026-09-16T00:15:00Z"}) {
		t.Errorf("blocked by %q", got)
	}
}

func TestOverlapAllowGivesEachPeriodALockOfItsOwn(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := func() []string {
		j := r.stored(t, Job{Name: "j", Schedule: "@daily", Lock: "L", Overlap: OverlapAllow}, time.Now().UTC().AddDate(0, 0, -2))
		r.jobs["j"] = j
		if err := r.plan(t.Context()); err != nil {
			t.Fatal(err)
		}
		return texts(t, pool, `select key from pawl.periods order by key`)
	}()
	for _, key := range keys {
		run := r.begin(t.Context(), "L#"+key, 0)
		if run == nil || run.Period.Key != key || run.Token().Lock != "L#"+key {
			t.Errorf("%s doesn't run beside the others", key)
		}
	}
}
