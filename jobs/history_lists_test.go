package jobs_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

// Rows of one moment are told apart, or a page would leave some out or show them twice.
func TestPagesOfRunsLeaveNoneOut(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	puts(t, pool, `insert into pawl.schedules (job, app, definition, lock, watermark) values ('j', 'a', '{}', 'L', now()), ('k', 'a', '{}', 'M', now())`,
		`insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, state, started_at, ended_at)
select gen_random_uuid(), case when n % 3 = 0 then 'k' else 'j' end, n::text, 1, 1, 'L' || n, n, 'h' || n % 2, (array['complete', 'failed', 'lost', 'running'])[1 + n % 4],
       '2026-09-16 02:00Z'::timestamptz + (n / 10) * interval '1 s', case when n % 4 <> 3 then now() end from generate_series(0, 59) n`)
	h := jobs.NewHistory(pool)
	at := time.Date(2026, 9, 16, 2, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		filter jobs.RunFilter
		want   int
	}{
		"all":               {jobs.RunFilter{}, 60},
		"job":               {jobs.RunFilter{Job: "j"}, 40},
		"state":             {jobs.RunFilter{State: "lost"}, 15},
		"running":           {jobs.RunFilter{State: "running"}, 15},
		"states":            {jobs.RunFilter{States: []string{"lost", "running", "complete"}}, 45},
		"states of few":     {jobs.RunFilter{State: "lost", States: []string{"failed"}}, 30},
		"job and states":    {jobs.RunFilter{Job: "k", States: []string{"lost", "running"}}, 10},
		"holder":            {jobs.RunFilter{Holder: "h1"}, 30},
		"holder and state":  {jobs.RunFilter{Holder: "h1", State: "running"}, 15},
		"holder and failed": {jobs.RunFilter{Holder: "h1", State: "failed"}, 15},
		"part of a holder":  {jobs.RunFilter{Holder: "h"}, 0},
		"job and holder":    {jobs.RunFilter{Job: "k", Holder: "h1"}, 10},
		"key":               {jobs.RunFilter{Job: "k", Key: "3"}, 1},
		"from and to":       {jobs.RunFilter{From: at.Add(time.Second), To: at.Add(3 * time.Second)}, 20},
		"job, from":         {jobs.RunFilter{Job: "j", From: at.Add(5 * time.Second)}, 7},
	} {
		seen, last := map[string]bool{}, []jobs.RunRecord{}
		for test.filter.Limit = 7; ; test.filter.Before = last[len(last)-1].Cursor() {
			page, err := h.Runs(t.Context(), test.filter)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(page) == 0 {
				break
			}
			for _, r := range page {
				if seen[r.ID.String()] || len(last) > 0 && r.StartedAt.After(last[len(last)-1].StartedAt) {
					t.Errorf("%s: %s comes twice or out of order", name, r.ID)
				}
				seen[r.ID.String()] = true
			}
			last = page
		}
		if len(seen) != test.want {
			t.Errorf("%s: %d runs, want %d", name, len(seen), test.want)
		}
	}
}

func TestPagesOfPeriodsLeaveNoneOut(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	puts(t, pool, `insert into pawl.schedules (job, app, definition, lock, watermark) values ('j', 'a', '{}', 'L', now()), ('k', 'a', '{}', 'M', now())`,
		`insert into pawl.periods (job, key, revision, lock, state, reason, start_at, end_at, scheduled_at, ended_at)
select case when n % 3 = 0 then 'k' else 'j' end, 'p,' || n / 6, n % 6 + 1, 'L', s.state, case when s.state not in ('open', 'complete') then 'x' end,
       now(), now(), '2026-09-16 02:00Z'::timestamptz + (n / 12) * interval '1 s', case when s.state <> 'open' then now() end
  from generate_series(0, 59) n cross join lateral (select (array['complete', 'dead', 'missed', 'open', 'cancelled'])[1 + n % 5] as state) s`)
	h := jobs.NewHistory(pool)
	at := time.Date(2026, 9, 16, 2, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		filter jobs.PeriodFilter
		want   int
	}{
		"all":         {jobs.PeriodFilter{}, 60},
		"job":         {jobs.PeriodFilter{Job: "j"}, 40},
		"state":       {jobs.PeriodFilter{State: "dead"}, 12},
		"states":      {jobs.PeriodFilter{States: []string{"dead", "missed", "open"}}, 36},
		"with all":    {jobs.PeriodFilter{States: []string{"dead", "complete"}}, 24},
		"job, states": {jobs.PeriodFilter{Job: "k", State: "open", States: []string{"skipped"}}, 4},
		"from and to": {jobs.PeriodFilter{From: at.Add(time.Second), To: at.Add(3 * time.Second)}, 24},
	} {
		var seen []string
		for test.filter.Limit = 7; ; {
			page, err := h.Periods(t.Context(), test.filter)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(page) == 0 {
				break
			}
			for _, p := range page {
				seen = append(seen, fmt.Sprint(p.Job, p.Key, p.Revision))
			}
			test.filter.Before = page[len(page)-1].Cursor()
		}
		if slices.Sort(seen); len(seen) != test.want || len(slices.Compact(seen)) != test.want {
			t.Errorf("%s: %d periods, want %d, each once", name, len(seen), test.want)
		}
	}
}

func TestACursorThatNoRowGaveIsRefused(t *testing.T) {
	t.Parallel()
	h := jobs.NewHistory(nil) // it never gets that far
	for _, text := range []string{"x", "2026-09-16T02:00:00Z", "2026-09-16T02:00:00Z,1", "yesterday,00000000-0000-4000-8000-000000000001"} {
		if _, err := h.Runs(t.Context(), jobs.RunFilter{Before: text}); !errors.Is(err, jobs.ErrCursor) {
			t.Errorf("Runs before %q: %v", text, err)
		}
		if _, err := h.Periods(t.Context(), jobs.PeriodFilter{Before: text}); !errors.Is(err, jobs.ErrCursor) {
			t.Errorf("Periods before %q: %v", text, err)
		}
	}
	if _, err := h.Runs(t.Context(), jobs.RunFilter{States: []string{"lost", "done"}}); !errors.Is(err, jobs.ErrState) {
		t.Errorf("Runs in states lost and done: %v", err)
	}
	if _, err := h.Periods(t.Context(), jobs.PeriodFilter{States: []string{"done"}}); !errors.Is(err, jobs.ErrState) {
		t.Errorf("Periods in state done: %v", err)
	}
}
