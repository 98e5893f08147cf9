package jobs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

func TestBadJobsAreRefusedWithFieldValueAndFix(t *testing.T) {
	t.Parallel()
	good := jobs.Job{Name: "settle", Schedule: "@daily", Func: nothing}
	for _, c := range []struct {
		name string
		edit func(*jobs.Job)
		want []string
	}{
		{"no name", func(j *jobs.Job) { j.Name = "" }, []string{"Name", `""`, "lower-case"}},
		{"upper case", func(j *jobs.Job) { j.Name = "Settle" }, []string{"Name", `"Settle"`}},
		{"blank", func(j *jobs.Job) { j.Name = "nightly report" }, []string{"Name", `"nightly report"`}},
		{"no function", func(j *jobs.Job) { j.Func = nil }, []string{"Func"}},
		{"short TTL", func(j *jobs.Job) { j.TTL = 999 * time.Millisecond }, []string{"TTL", "999ms", "1s to 24h"}},
		{"negative timeout", func(j *jobs.Job) { j.Timeout = -5 * time.Second }, []string{"Timeout", "-5s", "NoTimeout"}},
		{"retries", func(j *jobs.Job) { j.MaxRetries = -2 }, []string{"MaxRetries", "-2"}},
		{"bad cron", func(j *jobs.Job) { j.Schedule = "61 2 * * *" }, []string{"settle", "61"}},
		{"CRON_TZ without a space", func(j *jobs.Job) { j.Schedule = "CRON_TZ=UTC" }, []string{"settle", "CRON_TZ", "timezone"}},
		{"never", func(j *jobs.Job) { j.Schedule = "0 0 30 2 *" }, []string{"settle", "0 0 30 2 *", "never"}},
		{"every 0s", func(j *jobs.Job) { j.Schedule = "@every 0s" }, []string{"settle", "0s"}},
		{"every -5s", func(j *jobs.Job) { j.Schedule = "@every -5s" }, []string{"settle", "-5s"}},
		{"every 1ms", func(j *jobs.Job) { j.Schedule = "@every 1ms" }, []string{"settle", "1ms"}},
		{"unknown zone", func(j *jobs.Job) { j.Timezone = "Europe/Berlinn" }, []string{"settle", "Europe/Berlinn", "Europe/Berlin"}},
		{"a lock with a NUL", func(j *jobs.Job) { j.Lock = "a\x00b" }, []string{"Lock", `"a\x00b"`, "UTF-8"}},
		{"a lock that is no text", func(j *jobs.Job) { j.Lock = "a\xff" }, []string{"Lock", `"a\xff"`, "UTF-8"}},
		{"unknown catch-up", func(j *jobs.Job) { j.CatchUp = "some" }, []string{"settle", "some"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := jobs.New(jobs.Config{Pool: pgtest.New(t)})
			if err != nil {
				t.Fatal(err)
			}
			j := good
			c.edit(&j)
			err = r.Add(j)
			for _, part := range c.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("Add = %v, want it to name %q", err, part)
				}
			}
		})
	}
}

func TestAJobNameIsUsedOnce(t *testing.T) {
	t.Parallel()
	r, err := jobs.New(jobs.Config{Pool: pgtest.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	job := jobs.Job{Name: "settle", Schedule: "@daily", Func: nothing}
	if err := r.Add(job); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(job); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("Add = %v, want a refusal", err)
	}
}

func TestAConfigWithoutAPoolIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := jobs.New(jobs.Config{}); err == nil || !strings.Contains(err.Error(), "Pool") {
		t.Errorf("New = %v, want it to name Pool", err)
	}
}

// A holder's name goes into every start: one that Postgres can't store would fail them all, for ever.
func TestNamesThatPostgresCannotStoreAreRefused(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	for field, cfg := range map[string]jobs.Config{"Holder": {Holder: "a\x00b"}, "App": {App: "a\xff"}} {
		cfg.Pool = pool
		if _, err := jobs.New(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("New = %v, want it to name %s", err, field)
		}
	}
}

func TestAnOutboxThatSaysWhatIsTheOutboxsIsRefused(t *testing.T) {
	t.Parallel()
	r, err := jobs.New(jobs.Config{Pool: pgtest.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	send := func(context.Context, *jobs.Run, jobs.Dispatch) error { return nil }
	for field, j := range map[string]jobs.Job{
		"Schedule": {Schedule: "@daily"}, "Overlap": {Overlap: jobs.OverlapSkip}, "OnDead": {OnDead: jobs.OnDeadAlert}, "Func": {Func: nothing},
	} {
		j.Name = "mail"
		var bad *jobs.ConfigError
		if err := r.Add(jobs.Outbox(j, send)); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("an outbox with a %s of its own = %v", field, err)
		}
	}
	if err := r.Add(jobs.Outbox(jobs.Job{Name: "mail", Schedule: "@manual"}, send)); err != nil {
		t.Error(err)
	}
}
