package jobs

import (
	"context"
	"strings"
	"testing"
	"time"
)

const aDay = 24 * time.Hour

// Each job's history goes when the job says, by whatever its runs have ended, and one that says nothing keeps the default.
func TestHistoryIsKeptAsLongAsItsJobSays(t *testing.T) {
	t.Parallel()
	run, pool := pruning(t)
	r := run.runner
	for job, keep := range map[string]Retention{
		"short": {Runs: 7 * aDay}, "long": {Runs: 1000 * aDay, Output: 500 * aDay}, "said": {Output: time.Hour}, "plain": {},
	} {
		r.stored(t, Job{Name: job, Schedule: "@manual", Retention: keep}, time.Now())
	}
	r.stored(t, Job{Name: "retired", Schedule: "@manual", Retention: Retention{Runs: 2 * aDay}}, time.Now())
	exec(t, pool, `update pawl.schedules set retired_at = now() where job = 'retired' returning 1`)
	exec(t, pool, `with x as (insert into pawl.runs (id, job, key, revision, attempt, lock, token, state, started_at, ended_at)
	  select gen_random_uuid(), j, d || ' ' || s, 1, 1, j || d || s, 1, s, now() - d * interval '1 day', now() - d * interval '1 day'
	    from unnest('{short,long,said,plain,retired}'::text[]) j, unnest('{1,6,8,13,15,89,91,499,501,999,1001}'::int[]) d, unnest('{complete,failed}'::text[]) s
	  returning *)
	  , o as (insert into pawl.outputs (run, job, head, tail, bytes, at) select id, job, '', '', 0, ended_at from x)
	  select count(*) from x`)
	if err := prune(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	for job, want := range map[string][2]string{
		"short": {"1 6", "1 6"}, "long": {"1 6 8 13 15 89 91 499 501 999", "1 6 8 13 15 89 91 499"},
		"said": {"1 6 8 13 15 89", ""}, "plain": {"1 6 8 13 15 89", "1 6 8 13"}, "retired": {"1", "1"},
	} {
		const days = `select split_part(r.key, ' ', 1) from pawl.runs r`
		if got := strings.Join(texts(t, pool, days+` where r.job = $1 group by 1 having count(*) = 2 order by split_part(min(r.key), ' ', 1)::int`, job), " "); got != want[0] {
			t.Errorf("%s: runs of %s days are kept, want %s", job, got, want[0])
		}
		got := strings.Join(texts(t, pool, days+` join pawl.outputs o on o.run = r.id where o.job = $1 group by 1 order by split_part(r.key, ' ', 1)::int`, job), " ")
		if got != want[1] {
			t.Errorf("%s: output of %s days is kept, want %s", job, got, want[1])
		}
	}
}

func TestHistoryThatWouldBeKeptTooShortIsRefused(t *testing.T) {
	t.Parallel()
	for want, keep := range map[string]Retention{
		"Retention.Runs 1h0m0s": {Runs: time.Hour}, "Retention.Runs -24h0m0s": {Runs: -aDay}, "Retention.Runs 876024h0m0s": {Runs: 36501 * aDay},
		"Retention.Output 1m0s": {Output: time.Minute}, "use at most Retention.Runs, which is 24h0m0s": {Runs: aDay, Output: 2 * aDay},
	} {
		_, err := Job{Name: "j", Schedule: "@daily", Retention: keep, Func: func(context.Context, *Run) error { return nil }}.withDefaults()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", keep, err, want)
		}
	}
	if k := (Retention{Runs: aDay}); k.output() != aDay {
		t.Errorf("output is kept for %s, want no longer than its run", k.output())
	}
}
