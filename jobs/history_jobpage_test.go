package jobs_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

// puts runs statements whose rows a test reads.
func puts(t *testing.T, pool *pgxpool.Pool, sqls ...string) {
	t.Helper()
	for _, sql := range sqls {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// putJob stores a daily job, j, under the lock L. Its periods are put with putPeriod.
func putJob(t *testing.T, pool *pgxpool.Pool, name, definition string) {
	t.Helper()
	const sql = `insert into pawl.schedules (job, app, definition, lock, watermark, next_at) values ($1, 'shop', $2, 'job:' || $1, now(), now())`
	if _, err := pool.Exec(t.Context(), sql, name, definition); err != nil {
		t.Fatal(err)
	}
}

// putPeriod stores a period of a job, so many hours ago; set are further columns: "reason = 'failed', attempts = 6".
func putPeriod(t *testing.T, pool *pgxpool.Pool, job, key, state string, hours int, set string) {
	t.Helper()
	const sql = `
insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, ended_at, late_at)
select $1, $2, 'job:' || $1, $3, x.at, x.at + interval '1 d', x.at, case when $3 not in ('open', 'running', 'held') then x.at + interval '1 min' end, x.at + interval '10 min'
  from (select now() - $4 * interval '1 h' as at) x`
	if _, err := pool.Exec(t.Context(), sql, job, key, state, hours); err != nil {
		t.Fatal(err)
	}
	if set != "" {
		if _, err := pool.Exec(t.Context(), `update pawl.periods set `+set+` where job = $1 and key = $2`, job, key); err != nil {
			t.Fatalf("%s: %v", set, err)
		}
	}
}

const daily = `{"schedule": "0 2 * * *", "timezone": "Asia/Kolkata", "runs": 6}`

func TestHealthNamesTheWorstOfTheLastPeriods(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	h := jobs.NewHistory(pool)
	type period struct {
		key, state string
		hours      int
		set        string
	}
	old := func(p ...period) []period { // 14 that went well hide what was before them
		for i := range 14 {
			p = append(p, period{time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), "complete", 300 - i, ""})
		}
		return p
	}
	for name, test := range map[string]struct {
		definition, set string
		periods         []period
		health, text    string
	}{
		"nothing":      {health: "ok", text: "Nothing has been owed yet"},
		"fine":         {periods: []period{{"a", "complete", 1, ""}}, health: "ok", text: "Last: a, complete"},
		"dead":         {periods: []period{{"a", "missed", 1, "reason = 'window'"}, {"b", "dead", 2, "reason = 'failed', attempts = 6"}}, health: "dead", text: "Dead: b after 6 runs, the last failed"},
		"dead_before":  {periods: old(period{"a", "dead", 400, "reason = 'failed'"}), health: "ok", text: "Last: 2026-01-14, complete"},
		"dead_amid":    {periods: old(period{"a", "dead", 290, "reason = 'failed'"}), health: "dead", text: "Dead: a after 0 runs"},
		"dead_stops":   {periods: old(period{"a", "dead", 400, "reason = 'timed_out', attempts = 1, waits = 'decision'"}), health: "dead", text: "Dead: a after 1 run, the last timed out; the next wait for a decision"},
		"missed_off":   {definition: `{"schedule": "0 2 * * *", "catch_up": "none"}`, periods: []period{{"a", "missed", 1, "reason = 'catch_up'"}}, health: "missed", text: "Missed a, catch-up is off"},
		"missed_late":  {periods: []period{{"a", "missed", 1, "reason = 'too_late'"}}, health: "missed", text: "Missed a, it could not start in time"},
		"overdue":      {periods: []period{{"a", "running", 1, "due_at = now() - interval '1 min'"}}, health: "overdue", text: "Overdue: a was due by "},
		"late":         {periods: []period{{"a", "open", 1, ""}}, health: "late", text: "Late: a should have started by "},
		"late_needs":   {definition: `{"schedule": "0 2 * * *", "needs": ["import"]}`, periods: []period{{"a", "open", 1, "waits = 'needs'"}}, health: "late", text: "; waits for import"},
		"paused":       {set: "paused_at = now(), paused_by = 'ann', pause_note = 'month end'", periods: []period{{"a", "open", 1, "waits = 'paused'"}}, health: "paused", text: "Paused by ann: month end"},
		"retired":      {set: "retired_at = now()", periods: []period{{"a", "dead", 1, "reason = 'failed'"}}, health: "retired", text: "Retired "},
		"running":      {periods: []period{{"a", "running", 0, "attempts = 2"}}, health: "running", text: "Running a, attempt 2"},
		"waiting":      {periods: []period{{"a", "open", 0, "waits = 'dead', late_at = null"}}, health: "waiting", text: "Waiting: a waits for a decision on a dead period before it"},
		"retried":      {periods: []period{{"a", "open", 1, "attempts = 1, started_at = now(), not_before = now() + interval '1 h'"}}, health: "waiting", text: "Waiting: a is retried at "},
		"backfilled":   {periods: []period{{"a", "open", 1, "origin = 'backfill'"}}, health: "waiting", text: "Waiting: a"},
		"rerun":        {periods: []period{{"a", "dead", 1, "reason = 'failed'"}}, health: "running", text: "Running a"},
		"unreadable":   {definition: `{"schedule": 7}`, health: "ok", text: "can't be read"},
		"hourly":       {definition: `{"schedule": "0 * * * *", "catch_up": "latest"}`, periods: []period{{"x", "missed", 1, "reason = 'catch_up', ticks = 3, scheduled_at = '2020-02-03 14:00Z'"}}, health: "missed", text: "Missed 2020-02-03 14:00 UTC and 2 more, only the latest is caught up with"},
		"long_backlog": {periods: old(period{"a", "open", 400, ""}), health: "late", text: "Late: a should"},
	} {
		putJob(t, pool, name, cmp.Or(test.definition, daily))
		for _, p := range test.periods {
			putPeriod(t, pool, name, p.key, p.state, p.hours, p.set)
		}
		if name == "rerun" {
			puts(t, pool, `insert into pawl.periods (job, key, revision, lock, state, start_at, end_at, scheduled_at) select job, key, 2, lock, 'running', start_at, end_at, scheduled_at from pawl.periods where job = 'rerun'`)
		}
		if test.set != "" {
			puts(t, pool, `update pawl.schedules set `+test.set+` where job = '`+name+`'`)
		}
		s, err := h.Job(t.Context(), name)
		if err != nil || s.Health != test.health || !strings.Contains(s.HealthText, test.text) {
			t.Errorf("%s: %s, %q, %v, want %s, %q", name, s.Health, s.HealthText, err, test.health, test.text)
		}
		if s.Last14 == nil || s.Next == nil || (len(s.Next) != 5) != (name == "retired" || name == "unreadable") {
			t.Errorf("%s: marks %v, next %v", name, s.Last14, s.Next)
		}
	}
	trouble, err := h.JobPage(t.Context(), jobs.JobFilter{State: jobs.JobsTrouble})
	want := []string{"dead", "dead_amid", "dead_stops", "hourly", "late", "late_needs", "long_backlog", "missed_late", "missed_off", "overdue"}
	if got := names(trouble); err != nil || !slices.Equal(got, want) {
		t.Errorf("in trouble: %v, %v, want %v", got, err, want)
	}
	few, err := h.JobPage(t.Context(), jobs.JobFilter{State: jobs.JobsTrouble, Limit: 2, After: "dead_stops"})
	if got := names(few); err != nil || !slices.Equal(got, []string{"hourly", "late"}) {
		t.Errorf("the page after dead_stops: %v, %v", got, err)
	}
}

func names(list []jobs.JobSummary) (names []string) {
	for _, s := range list {
		names = append(names, s.Job)
	}
	return names
}

func TestAJobPageChoosesAndGoesOnByName(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	h := jobs.NewHistory(pool)
	if none, err := h.JobPage(t.Context(), jobs.JobFilter{}); err != nil || none == nil || len(none) != 0 {
		t.Errorf("of no jobs: %v, %v", none, err)
	}
	for _, name := range []string{"a_1", "a_2", "b", "c"} {
		putJob(t, pool, name, daily)
	}
	puts(t, pool, `update pawl.schedules set app = 'ledger' where job = 'b'`, `update pawl.schedules set paused_at = now() where job in ('b', 'c')`,
		`update pawl.schedules set retired_at = now() where job = 'c'`)
	for _, test := range []struct {
		filter jobs.JobFilter
		want   string
	}{
		{jobs.JobFilter{}, "a_1 a_2 b c"},
		{jobs.JobFilter{State: jobs.JobsAll, Limit: 3}, "a_1 a_2 b"},
		{jobs.JobFilter{After: "b"}, "c"},
		{jobs.JobFilter{Prefix: "a_"}, "a_1 a_2"},
		{jobs.JobFilter{Prefix: "a_", After: "a_1"}, "a_2"},
		{jobs.JobFilter{Prefix: "%"}, ""},
		{jobs.JobFilter{App: "ledger"}, "b"},
		{jobs.JobFilter{State: jobs.JobsPaused}, "b"},
		{jobs.JobFilter{State: jobs.JobsRetired}, "c"},
		{jobs.JobFilter{State: jobs.JobsTrouble}, ""},
	} {
		list, err := h.JobPage(t.Context(), test.filter)
		if got := strings.Join(names(list), " "); err != nil || got != test.want {
			t.Errorf("%+v: %q, %v, want %q", test.filter, got, err, test.want)
		}
	}
	if _, err := h.JobPage(t.Context(), jobs.JobFilter{State: "bad"}); !errors.Is(err, jobs.ErrState) {
		t.Errorf("state bad: %v", err)
	}
	if _, err := h.Job(t.Context(), "nobody"); !errors.Is(err, jobs.ErrUnknownJob) {
		t.Errorf("nobody: %v", err)
	}
}

func TestAJobsFiguresAreItsOwn(t *testing.T) {
	t.Parallel()
	h, pool := history(t)
	for i, set := range []string{"state = 'missed', reason = 'window'", "waits = 'dead', late_at = null", "reason = 'failed'"} {
		putPeriod(t, pool, "settle", string(rune('x'+i)), []string{"missed", "open", "dead"}[i], 30+i, set)
	}
	s, err := h.Job(t.Context(), "settle")
	if err != nil {
		t.Fatal(err)
	}
	if s.Open != 2 || s.Dead != 1 || s.Missed != 1 || s.Median != 3*time.Minute+30*time.Second {
		t.Errorf("open %d, dead %d, missed %d, median %v, want 2, 1, 1, 3m30s", s.Open, s.Dead, s.Missed, s.Median)
	}
	if s.LastRun == nil || s.LastRun.Token != 102 || s.LastRun.State != "running" {
		t.Errorf("last run = %+v, want 102's", s.LastRun)
	}
	if s.App != "shop" || !strings.Contains(string(s.Definition), "Europe/Paris") || s.Next[0].Format("15:04 MST") != "02:00 CET" && s.Next[0].Format("15:04 MST") != "02:00 CEST" {
		t.Errorf("app %q, definition %s, next %v", s.App, s.Definition, s.Next)
	}
	if r, err := h.Job(t.Context(), "report"); err != nil || r.LastRun != nil || r.Median != 0 {
		t.Errorf("report has run: %+v, %v", r.LastRun, err)
	}
}

// A period is marked late when its first run began late; a retry of one that began in time is none.
func TestMarksTellLateFromComplete(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	putJob(t, pool, "j", daily)
	putPeriod(t, pool, "j", "in_time", "complete", 9, "started_at = scheduled_at, attempts = 1")
	putPeriod(t, pool, "j", "begun_late", "complete", 8, "started_at = scheduled_at + interval '1 h', attempts = 1")
	putPeriod(t, pool, "j", "retried", "complete", 7, "started_at = scheduled_at + interval '1 h', attempts = 2")
	putPeriod(t, pool, "j", "after_due", "complete", 6, "started_at = scheduled_at, due_at = scheduled_at, attempts = 1")
	putPeriod(t, pool, "j", "backfill", "complete", 5, "started_at = scheduled_at + interval '1 h', origin = 'backfill'")
	putPeriod(t, pool, "j", "not_begun", "open", 4, "")
	putPeriod(t, pool, "j", "held", "held", 3, "waits = 'paused', reason = 'paused'")
	puts(t, pool, `insert into pawl.runs (id, job, key, revision, attempt, lock, token, state, started_at, ended_at)
 select gen_random_uuid(), 'j', 'retried', 1, n, 'job:j', n, 'complete', scheduled_at + (n - 1) * interval '1 h', now() from pawl.periods, generate_series(1, 2) n where key = 'retried'`)
	s, err := jobs.NewHistory(pool).Job(t.Context(), "j")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range s.Last14 {
		got = append(got, m.Key+" "+m.State)
	}
	if want := []string{"in_time complete", "begun_late late", "retried complete", "after_due late", "backfill complete", "not_begun late", "held held"}; !slices.Equal(got, want) {
		t.Errorf("marks = %q, want %q", got, want)
	}
}
