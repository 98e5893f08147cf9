package jobs_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

// told are the cells of a calendar, each its key and state.
func told(days []jobs.PeriodDay) (out []string) {
	for _, d := range days {
		out = append(out, d.Key+" "+d.State)
	}
	return out
}

func TestACalendarTellsEveryDayThatIsNotDone(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	h := jobs.NewHistory(pool)
	// Runs from Tuesday to Saturday for the day before: Saturdays and Sundays are never owed. 2026-09-14 is a Monday.
	putJob(t, pool, "settle", `{"schedule": "15 2 * * 2-6", "timezone": "Asia/Kolkata", "period": "day", "period_offset": -1, "runs": 6}`)
	puts(t, pool, `update pawl.schedules set watermark = '2026-09-17 00:00Z'`,
		`insert into pawl.periods (job, key, revision, lock, state, reason, start_at, end_at, scheduled_at, ended_at, attempts, origin)
select 'settle', key, revision, 'L', state, reason, (key || ' 00:00+05:30')::timestamptz, (key || ' 00:00+05:30')::timestamptz + interval '1 d', (key || ' 02:15+05:30')::timestamptz + interval '1 d',
       case when state <> 'running' then now() end, 1, 'schedule'
  from (values ('2026-09-14', 1, 'complete', null), ('2026-09-14', 2, 'running', null), ('2026-09-15', 1, 'dead', 'failed'), ('2026-09-19', 1, 'complete', null), ('2026-09-21', 1, 'complete', null)) v (key, revision, state, reason)`)
	kolkata := time.FixedZone("IST", 5*3600+1800)
	monday := time.Date(2026, 9, 14, 0, 0, 0, 0, kolkata)
	days, err := h.Calendar(t.Context(), "settle", monday, monday.AddDate(0, 0, 7))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"2026-09-14 running", "2026-09-15 dead", "2026-09-16 not owed", "2026-09-17 not planned", "2026-09-18 not planned",
		"2026-09-19 complete", "2026-09-20 not owed",
	}
	// The database's clock may say any day: what isn't planned is ahead before its tick.
	for i, d := range days {
		if d.ScheduledAt != nil && d.ScheduledAt.After(time.Now()) {
			want[i] = strings.Replace(want[i], "not planned", "ahead", 1)
		}
	}
	if got := told(days); !slices.Equal(got, want) {
		t.Errorf("calendar %q, want %q", got, want)
	}
	if d := days[1]; d.Reason != "failed" || d.Attempts != 1 || d.ScheduledAt.Format(time.RFC3339) != "2026-09-15T20:45:00Z" || !d.Start.Equal(monday.AddDate(0, 0, 1)) {
		t.Errorf("2026-09-15: %+v", d)
	}
	if days[0].Complete || days[1].Complete || !days[5].Complete {
		t.Errorf("complete are %t, %t, %t, want only 2026-09-19", days[0].Complete, days[1].Complete, days[5].Complete)
	}
	if days[0].Revision != 2 || days[5].Revision != 1 {
		t.Errorf("revisions %d and %d, want 2 and 1", days[0].Revision, days[5].Revision)
	}
	future := time.Now().AddDate(1, 0, 0)
	if days, err = h.Calendar(t.Context(), "settle", future, future.AddDate(0, 0, 8)); err != nil || !slices.ContainsFunc(days, func(d jobs.PeriodDay) bool { return d.State == jobs.DayAhead }) {
		t.Errorf("next year: %q, %v", told(days), err)
	}
	puts(t, pool, `update pawl.schedules set retired_at = now()`)
	if days, err = h.Calendar(t.Context(), "settle", future, future.AddDate(0, 0, 8)); err != nil || slices.ContainsFunc(days, func(d jobs.PeriodDay) bool { return d.State != jobs.DayNotOwed }) {
		t.Errorf("next year, retired: %q, %v", told(days), err)
	}
	if days, err = h.Calendar(t.Context(), "settle", monday, monday.AddDate(5, 0, 0)); err != nil || len(days) != 400 {
		t.Errorf("5 years: %d cells, %v", len(days), err)
	}
	if days, err = h.Calendar(t.Context(), "settle", monday, monday); err != nil || days == nil || len(days) != 0 {
		t.Errorf("no time: %v, %v", days, err)
	}
	if _, err = h.Calendar(t.Context(), "nobody", monday, future); !errors.Is(err, jobs.ErrUnknownJob) {
		t.Errorf("nobody: %v", err)
	}
}

// A row of many ticks tells of each of them, also of those before which the calendar begins; a key of its own goes before.
func TestACalendarUnfoldsStretches(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	h := jobs.NewHistory(pool)
	putJob(t, pool, "sync", `{"schedule": "0 * * * *", "period": "hour", "runs": 6}`)
	puts(t, pool, `update pawl.schedules set watermark = '2026-09-16 06:30Z'`,
		`insert into pawl.periods (job, key, revision, lock, state, reason, start_at, end_at, scheduled_at, last_at, ticks, ended_at) values
 ('sync', '2026-09-16T00+00:00', 1, 'L', 'missed', 'catch_up', '2026-09-16 00:00Z', '2026-09-16 01:00Z', '2026-09-16 00:00Z', '2026-09-16 04:00Z', 5, now()),
 ('sync', '2026-09-16T03+00:00', 1, 'L', 'complete', null, '2026-09-16 03:00Z', '2026-09-16 04:00Z', '2026-09-16 03:00Z', null, 1, now()),
 ('sync', '2026-09-16T05+00:00', 1, 'L', 'open', null, '2026-09-16 05:00Z', '2026-09-16 06:00Z', '2026-09-16 05:00Z', null, 1, null)`)
	from := time.Date(2026, 9, 16, 2, 0, 0, 0, time.UTC)
	days, err := h.Calendar(t.Context(), "sync", from, from.Add(5*time.Hour))
	want := []string{"2026-09-16T02+00:00 missed", "2026-09-16T03+00:00 complete", "2026-09-16T04+00:00 missed", "2026-09-16T05+00:00 open", "2026-09-16T06+00:00 not owed"}
	if got := told(days); err != nil || !slices.Equal(got, want) {
		t.Errorf("calendar %q, %v, want %q", got, err, want)
	}
}

func TestACalendarOfAManualJobHasWhatWasTriggered(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	putJob(t, pool, "j", `{"schedule": "@manual", "runs": 6}`)
	putPeriod(t, pool, "j", "01J7Z", "complete", 3, "")
	putPeriod(t, pool, "j", "01J7A", "complete", 300, "")
	days, err := jobs.NewHistory(pool).Calendar(t.Context(), "j", time.Now().Add(-24*time.Hour), time.Now())
	if got := told(days); err != nil || !slices.Equal(got, []string{"01J7Z complete"}) {
		t.Errorf("calendar %q, %v", got, err)
	}
}
