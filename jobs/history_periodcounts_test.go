package jobs_test

import (
	"maps"
	"testing"
)

// More of one job than a list would hold must not hide another job's.
func TestPeriodCountsCountEveryJob(t *testing.T) {
	t.Parallel()
	h, pool := history(t)
	const many = `
insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at)
select 'settle', 'k' || n, 'job:settle', case when n <= 1500 then 'open' else 'held' end, now(), now(), now() from generate_series(1, 2000) n`
	if _, err := pool.Exec(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	counts, err := h.PeriodCounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]int64{"settle": {"open": 1501, "running": 1, "held": 500}, "report": {"dead": 2}}
	if !maps.EqualFunc(counts, want, maps.Equal) {
		t.Errorf("counts = %v, want %v", counts, want)
	}
}
