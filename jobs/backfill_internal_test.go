package jobs

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

func keysOfList(list []BackfillPeriod) (keys []string) {
	for _, x := range list {
		keys = append(keys, x.Key)
	}
	return keys
}

func TestABackfillListsExactlyTheOwedPeriodsOfTheRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		job      Job
		from, to string
		want     []string
	}{
		{"weekdays in a zone", Job{Schedule: "30 1 * * 1-5", Timezone: "Asia/Tokyo"}, "2026-09-11", "2026-09-15", []string{"2026-09-11", "2026-09-14", "2026-09-15"}},
		{"a shifted day", Job{Schedule: "15 2 * * 2-6", Period: "day", PeriodOffset: -1, Timezone: "Europe/Berlin"}, "2026-09-11", "2026-09-15", []string{"2026-09-11", "2026-09-14", "2026-09-15"}},
		{"a day ahead", Job{Schedule: "15 2 * * *", PeriodOffset: 2}, "2026-09-11", "2026-09-12", []string{"2026-09-11", "2026-09-12"}},
		{"one day", Job{Schedule: "@daily"}, "2026-09-11", "2026-09-11", []string{"2026-09-11"}},
		{"no day", Job{Schedule: "0 0 * * 1"}, "2026-W37", "2026-W38", []string{"2026-W37", "2026-W38"}},
		{"never owed", Job{Schedule: "0 1 * * 1-5"}, "2026-09-12", "2026-09-13", nil},
		{"months", Job{Schedule: "0 3 2 * *", PeriodOffset: -1}, "2025-12", "2026-02", []string{"2025-12", "2026-01", "2026-02"}},
		{"ticks", Job{Schedule: "*/20 * * * *"}, "2026-09-11T00:10:00Z", "2026-09-11T01:00:00Z", []string{"2026-09-11T00:20:00Z", "2026-09-11T00:40:00Z", "2026-09-11T01:00:00Z"}},
		{"ticks with an offset", Job{Schedule: "0 6,18 * * *", Period: "tick", PeriodOffset: 1}, "2026-09-11T06:00:00Z", "2026-09-11T18:00:00Z", []string{"2026-09-11T06:00:00Z", "2026-09-11T18:00:00Z"}},
		{
			"the repeated hour",
			Job{Schedule: "5 * * * *", Timezone: "Europe/Berlin"},
			"2025-10-26T01+02:00", "2025-10-26T03+01:00",
			[]string{"2025-10-26T01+02:00", "2025-10-26T02+02:00", "2025-10-26T02+01:00", "2025-10-26T03+01:00"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.job.Name, c.job.Lock = "j", "L"
			p := &planned{definition: c.job.definition(""), now: utcTime(t, "2026-09-20T00:00Z")}
			if c.name == "the repeated hour" {
				p.now = utcTime(t, "2025-11-20T00:00Z")
			}
			var err error
			if p.schedule, err = p.parse(); err != nil {
				t.Fatal(err)
			}
			list, err := p.between(c.from, c.to)
			if got := keysOfList(list); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
			for _, x := range list {
				if got := p.schedule.Period(x.ScheduledAt).Key; got != x.Key {
					t.Errorf("%s is said to be owed by %s, which owes %s", x.Key, x.ScheduledAt, got)
				}
			}
		})
	}
}

func TestABackfillSaysWhatIsWrongWithItsKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schedule, from, to, want string }{
		{"@daily", "2026-9-1", "2026-09-02", `from: "2026-9-1" is not a day; write it like 2026-09-16`},
		{"@daily", "2026-09-02", "2026-09-01", `to: "2026-09-01" is before 2026-09-02; give the older key first`},
		{"@manual", "2026-09-02", "2026-09-02", `schedule: "@manual" owes no periods by itself; trigger the job instead`},
		{"@hourly", "2025-01-01T00+00:00", "2026-09-01T00+00:00", `from: "2025-01-01T00+00:00" is older than 400 days, for which rows of hours and ticks are kept; give a later key`},
	} {
		j := Job{Name: "j", Lock: "L", Schedule: c.schedule}
		p := &planned{definition: j.definition(""), now: utcTime(t, "2026-09-20T00:00Z")}
		var err error
		if p.schedule, err = p.parse(); err != nil {
			t.Fatal(err)
		}
		if _, err = p.between(c.from, c.to); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.schedule, err, c.want)
		}
	}
}

func TestABackfillOwesWhatIsNotCompleteAfterWhatTheScheduleOwes(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	j := r.stored(t, Job{Name: "j", Schedule: "@daily", Lock: "L", CatchUp: schedule.CatchUpLatest, MaxRetries: NoRetries}, time.Now().UTC().AddDate(0, 0, -6))
	r.jobs["j"] = j
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys := texts(t, pool, `select key from pawl.periods order by key`) // 5 missed, 1 owed
	from := time.Now().UTC().AddDate(0, 0, -9).Format(time.DateOnly)    // and days of which nothing is known
	exec(t, pool, `update pawl.periods set state = 'complete' where key = $1 returning 1`, keys[1])
	exec(t, pool, `update pawl.periods set state = 'dead' where key = $1 returning 1`, keys[2])
	mark := texts(t, pool, `select watermark::text || next_at::text from pawl.schedules`)

	list, err := BackfillList(t.Context(), pool, "j", from, keys[5], BackfillConfig{})
	if err != nil || len(list) != 10 {
		t.Fatalf("%d periods, %v", len(list), err)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods`); n != 6 {
		t.Errorf("a list has made %d rows", n)
	}
	for range 2 { // the second time there is nothing to owe
		list, err = Backfill(t.Context(), pool, "j", from, keys[5], BackfillConfig{Actor: "ann"})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range list {
		if x.Owe {
			t.Errorf("%s is owed twice", x.Key)
		}
	}
	if got := texts(t, pool, `select watermark::text || next_at::text from pawl.schedules`); !slices.Equal(got, mark) {
		t.Errorf("the watermark moved from %s to %s", mark, got)
	}
	want := append([]string{keys[5]}, keysOfList(list)[:9]...)
	want = slices.DeleteFunc(want, func(key string) bool { return key == keys[1] })
	for _, key := range want {
		if got := r.goes(t, stateComplete); got != key {
			t.Errorf("%q runs, want %q", got, key)
		}
	}
	if got := r.goes(t, stateComplete); got != "" {
		t.Errorf("%q runs too", got)
	}
	if n := exec(t, pool, `select count(*) from pawl.audit where action = 'backfill' and actor = 'ann'`); n != 1 {
		t.Errorf("%d audit rows, want one: the second command has owed nothing", n)
	}
}

func TestABackfillLeavesAStretchAsItIs(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	now := time.Now().UTC().Truncate(10 * time.Minute)
	j := r.stored(t, Job{Name: "j", Schedule: "*/10 * * * *", Lock: "L"}, now.Add(-time.Hour))
	r.jobs["j"] = j
	r.planAt(t, "j", now)
	first := now.Add(-50 * time.Minute).Format("2006-01-02T15:04:05Z")
	list, err := Backfill(t.Context(), pool, "j", first, now.Add(-40*time.Minute).Format("2006-01-02T15:04:05Z"), BackfillConfig{Actor: "ann"})
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where state = 'missed' and ticks = 5 and revision = 1 and key = $1`, first); n != 1 {
		t.Errorf("the stretch has changed: %q", texts(t, pool, rowsSQL, "j"))
	}
	for _, want := range []string{now.Format("2006-01-02T15:04:05Z"), first, list[1].Key} {
		if got := r.goes(t, stateComplete); got != want {
			t.Errorf("%q runs, want %q", got, want)
		}
	}
	if list, err = Backfill(t.Context(), pool, "j", first, first, BackfillConfig{Actor: "ann"}); err != nil || list[0].State != stateComplete {
		t.Errorf("%+v, %v, want it complete", list, err)
	}
}

// Whatever range is asked for, the schedule plans on as if nobody had asked.
func TestABackfillNeverChangesWhatTheScheduleOwes(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.stored(t, Job{Name: "j", Schedule: "0 3 * * *", Lock: "L"}, utcTime(t, "2026-01-01T00:00Z"))
	at := utcTime(t, "2026-01-01T12:00Z")
	for range 60 {
		r.planAt(t, "j", at)
		from := at.AddDate(0, 0, -rand.IntN(40))
		to := from.AddDate(0, 0, rand.IntN(60)) // partly still to come
		if _, err := Backfill(t.Context(), pool, "j", from.Format(time.DateOnly), to.Format(time.DateOnly), BackfillConfig{Actor: "ann"}); err != nil {
			t.Fatal(err)
		}
		if n := exec(t, pool, `select count(*) from pawl.schedules where watermark = $1`, at); n != 1 {
			t.Fatal("the watermark has moved")
		}
		at = at.Add(time.Duration(1+rand.IntN(30)) * time.Hour)
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where revision > 1`); n != 0 {
		t.Errorf("%d periods are owed twice", n)
	}
	days := exec(t, pool, `select count(*) from pawl.periods where scheduled_at between '2026-01-01T03:00Z' and $1`, at.Add(-30*time.Hour))
	if want := int64(at.Add(-33*time.Hour).Sub(utcTime(t, "2026-01-01T00:00Z"))/(24*time.Hour)) + 1; days != want {
		t.Errorf("%d days have a row, want %d", days, want)
	}
}

func TestABackfillOfTooManyPeriodsIsRefused(t *testing.T) {
	t.Parallel()
	j := Job{Name: "j", Lock: "L", Schedule: "* * * * *"}
	p := &planned{definition: j.definition(""), now: utcTime(t, "2026-09-20T00:00Z")}
	p.schedule, _ = p.parse()
	if _, err := p.between("2026-01-01T00:00:00Z", "2026-09-19T00:00:00Z"); !errors.Is(err, ErrTooMany) {
		t.Errorf("between = %v, want ErrTooMany", err)
	}
}
