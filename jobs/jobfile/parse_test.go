package jobfile_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pawl/jobs/jobfile"
	"pawl/jobs/schedule"
)

// text reads a file that is given as text, where no secret is known.
func text(source string) (*jobfile.File, []jobfile.Issue) {
	return jobfile.Parse("pawl.yaml", []byte(source), nil)
}

// errors returns the texts of the errors only.
func errors(issues []jobfile.Issue) (texts []string) {
	for _, i := range issues {
		if i.Severity == jobfile.Error {
			texts = append(texts, i.Text)
		}
	}
	return texts
}

func TestRightFilesHaveNoError(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/ok/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		f, issues := jobfile.Parse(path, read(t, path), nil)
		if f == nil || len(errors(issues)) > 0 {
			t.Errorf("%s:\n%s", path, jobfile.Lines(issues))
		}
	}
	if _, issues := parse(t, "testdata/ok/complete.yaml"); jobfile.Failed(issues, true) {
		t.Errorf("with its secrets, strictly:\n%s", jobfile.Lines(issues))
	}
}

// TestEveryFieldIsReadToItsPlace compares what a file with every field becomes.
func TestEveryFieldIsReadToItsPlace(t *testing.T) {
	t.Parallel()
	f, _ := parse(t, "testdata/ok/complete.yaml")
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/ok/complete.json", string(b)+"\n")
}

func TestTheInitialFileHasNoIssue(t *testing.T) {
	t.Parallel()
	f, issues := jobfile.Parse("pawl.yaml", jobfile.Init(), fakeEnv)
	if len(issues) > 0 {
		t.Fatalf("Init:\n%s", jobfile.Lines(issues))
	}
	if len(f.Jobs) != 1 || f.Jobs[0].Command.Argv[0].String() != "echo" {
		t.Errorf("Init has the jobs %+v, want one that runs as it is", f.Jobs)
	}
}

// TestTheInitialFileIsRightUncommented takes the comments away from its examples.
func TestTheInitialFileIsRightUncommented(t *testing.T) {
	t.Parallel()
	intro, rest, _ := strings.Cut(string(jobfile.Init()), "version: 1")
	lines := []string{intro, "version: 1"}
	for line := range strings.SplitSeq(rest, "\n") {
		for _, begin := range []string{"# - ", "#   ", "# channels:", "# alerts:"} { // other comments are prose
			if strings.HasPrefix(strings.TrimSpace(line), begin) {
				line = strings.Replace(line, "# ", "", 1)
			}
		}
		lines = append(lines, line)
	}
	f, issues := text(strings.Join(lines, "\n"))
	if jobfile.Worst(issues) > jobfile.Note || len(f.Jobs) != 3 || len(f.Channels) != 1 {
		t.Errorf("%d jobs, %d channels:\n%s\n%s", len(f.Jobs), len(f.Channels), jobfile.Lines(issues), strings.Join(lines, "\n"))
	}
}

func TestDefaultsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	f, _ := text(`
version: 1
jobs:
  - {name: a, kind: sql, schedule: "15 2 * * *", sql: {statement: select 1}}
  - {name: b, kind: http, schedule: "*/5 * * * *", http: {url: "https://h/"}}
  - {name: c, kind: command, schedule: "@monthly", command: {argv: [x], exit: {3: retry}}}
  - {name: d, kind: go, schedule: "@manual", go: {}}
`)
	a, b, c, d := f.Jobs[0], f.Jobs[1], f.Jobs[2], f.Jobs[3]
	day := 24 * time.Hour
	for _, check := range []struct {
		what      string
		got, want any
	}{
		{"app", f.App, "default"},
		{"timezone", a.Timezone, "UTC"},
		{"dst", a.DST, jobfile.DST{Gap: "after", Overlap: "first"}},
		{"period", a.Period, schedule.Day},
		{"period of ticks", b.Period, schedule.PerTick},
		{"period of months", c.Period, schedule.Month},
		{"catch_up of days", a.CatchUp, schedule.CatchUpAll},
		{"catch_up of ticks", b.CatchUp, schedule.CatchUpLatest},
		{"catch_up_window of days", a.CatchUpWindow, 7 * day},
		{"catch_up_window of ticks", b.CatchUpWindow, day},
		{"catch_up_window of months", c.CatchUpWindow, 38 * day},
		{"catch_up_max", a.CatchUpMax, 50},
		{"overlap", a.Overlap, "queue"},
		{"late_after", a.LateAfter, time.Duration(0)}, // package schedule's
		{"late_after of short periods", b.Times.LateAfter(b.Times.Next(time.Now())), 150 * time.Second},
		{"timeout", a.Timeout, time.Hour},
		{"grace", a.Grace, 30 * time.Second},
		{"ttl", a.TTL, 30 * time.Second},
		{"retries", a.Retries, jobfile.Retries{Max: 5, MinDelay: 30 * time.Second, MaxDelay: 30 * time.Minute}},
		{"on_dead", a.OnDead, "alert"},
		{"lock", a.Lock, "job:a"},
		{"retention", a.Retention, jobfile.Retention{Runs: 90 * day, Output: 14 * day}},
		{"database", a.SQL.Database, "pawl"},
		{"transaction", a.SQL.Transaction, "single"},
		{"isolation", a.SQL.Isolation, "read_committed"},
		{"rows", a.SQL.Expect.Rows, jobfile.Rows{}},
		{"method", b.HTTP.Method, "POST"},
		{"retry_on", b.HTTP.RetryOn, []jobfile.Cause{"429", "502", "503", "connect"}},
		{"on_timeout", b.HTTP.OnTimeout, "uncertain"},
		{"max_response", b.HTTP.MaxResponse, jobfile.Size(256 << 10)},
		{"grace of a command", c.Command.Grace, 30 * time.Second},
		{"on_drain", c.Command.OnDrain, "stop"},
		{"exit", c.Command.Exit, map[int]string{0: "complete", 3: "retry"}},
		{"output", c.Command.Output, jobfile.Output{Max: 1 << 20, Keep: "head_tail"}},
		{"handler", d.Go.Handler, "d"},
	} {
		if !reflect.DeepEqual(check.got, check.want) {
			t.Errorf("%s = %v, want %v", check.what, check.got, check.want)
		}
	}
}

func TestAJobsOwnFieldBeatsTheFilesDefault(t *testing.T) {
	t.Parallel()
	f, issues := text(`
version: 1
channels: {ops: {webhook: "${env:X}"}, db: {webhook: "${env:X}", on: [dead]}}
defaults: {timezone: Europe/Berlin, timeout: 2h, owner: us, alerts: [ops], retries: {max: 9, max_delay: 2h}}
jobs:
  - {name: a, kind: go, schedule: "@daily", period: day, go: {}}
  - {name: b, kind: go, schedule: "@daily", period: day, timezone: UTC, timeout: none, owner: them, alerts: [db], retries: {max: 0}, go: {}}
`)
	if len(issues) > 0 {
		t.Fatal(jobfile.Lines(issues))
	}
	a, b := f.Jobs[0], f.Jobs[1]
	if a.Timezone != "Europe/Berlin" || a.Timeout != 2*time.Hour || a.Owner != "us" || a.Alerts[0] != "ops" || a.Retries.Max != 9 {
		t.Errorf("a = %+v, want the file's defaults", a)
	}
	if b.Timezone != "UTC" || b.Timeout != jobfile.NoTimeout || b.Owner != "them" || b.Alerts[0] != "db" {
		t.Errorf("b = %+v, want its own", b)
	}
	if want := (jobfile.Retries{Max: 0, MinDelay: 30 * time.Second, MaxDelay: 2 * time.Hour}); b.Retries != want {
		t.Errorf("b.Retries = %+v, want %+v: field by field", b.Retries, want)
	}
	if n := len(f.Channels["ops"].On); n != 12 {
		t.Errorf("a channel without on: gets %d events, want all 12", n)
	}
}

// TestOneBadJobSpoilsItselfOnly is about cases 37 and 41: a bad zone or schedule in one
// job must not stop the others.
func TestOneBadJobSpoilsItselfOnly(t *testing.T) {
	t.Parallel()
	f, issues := text(`
version: 1
jobs:
  - {name: good, kind: go, schedule: "@daily", go: {}}
  - {name: zone, kind: go, schedule: "@daily", timezone: Mars/Base, go: {}}
  - {name: never, kind: go, schedule: "0 0 30 2 *", go: {}}
  - {name: kind, kind: shell, schedule: "@daily"}
  - {name: fine, kind: go, schedule: "@daily", go: {}}
`)
	want := map[string]bool{"good": false, "zone": true, "never": true, "kind": true, "fine": false}
	for _, job := range f.Jobs {
		if job.Broken != want[job.Name] {
			t.Errorf("%s: broken %v, want %v", job.Name, job.Broken, want[job.Name])
		}
		if !job.Broken && job.Times.Next(time.Unix(0, 0)).IsZero() {
			t.Errorf("%s has no schedule", job.Name)
		}
	}
	for _, i := range issues {
		if i.Severity == jobfile.Error && !want[i.Job] {
			t.Errorf("an error of job %q: %s", i.Job, i)
		}
	}
	if !jobfile.Failed(issues, false) {
		t.Error("the file did not fail")
	}
}

// TestACycleBreaksAllOfItsJobs: none of them could ever run; what only needs them waits.
func TestACycleBreaksAllOfItsJobs(t *testing.T) {
	t.Parallel()
	f, issues := text(`
version: 1
jobs:
  - {name: after, kind: go, schedule: "@daily", needs: [{job: a}], go: {}}
  - {name: a, kind: go, schedule: "@daily", needs: [{job: b}], go: {}}
  - {name: b, kind: go, schedule: "@daily", needs: [{job: c}], go: {}}
  - {name: c, kind: go, schedule: "@daily", needs: [{job: a}], go: {}}
`)
	if got := errors(issues); len(got) != 1 || got[0] != "a.needs: cycle a → b → c → a." {
		t.Errorf("issues %q, want the cycle once", got)
	}
	for i, want := range []bool{false, true, true, true} {
		if f.Jobs[i].Broken != want {
			t.Errorf("%s: broken %v, want %v", f.Jobs[i].Name, f.Jobs[i].Broken, want)
		}
	}
}

// TestEachJobHasItsOwnZone is about case 43: 8 am in New York is not 8 am in Berlin.
func TestEachJobHasItsOwnZone(t *testing.T) {
	t.Parallel()
	f, issues := text(`
version: 1
defaults: {timezone: Europe/Berlin, owner: a}
jobs:
  - {name: berlin, kind: go, schedule: "0 8 * * *", period: day, go: {}}
  - {name: ny, kind: go, schedule: "0 8 * * *", period: day, timezone: America/New_York, go: {}}
`)
	if len(issues) > 0 {
		t.Fatal(jobfile.Lines(issues))
	}
	midnight := time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)
	for i, want := range []int{7, 13} {
		if got := f.Jobs[i].Times.Next(midnight).Hour(); got != want {
			t.Errorf("%s runs at %d:00 UTC, want %d:00", f.Jobs[i].Name, got, want)
		}
	}
}

func TestStartIsReadInTheJobsZone(t *testing.T) {
	t.Parallel()
	for start, want := range map[string]string{
		"2026-09-16":                "2026-09-15T22:00:00Z",
		"2026-09-16T02:15":          "2026-09-16T00:15:00Z",
		"2026-09-16T02:15:00Z":      "2026-09-16T02:15:00Z",
		"2026-09-16T02:15:00+05:00": "2026-09-15T21:15:00Z",
	} {
		f, issues := text(`
version: 1
defaults: {timezone: Europe/Berlin, owner: a}
jobs:
  - {name: a, kind: go, schedule: "@daily", period: day, start: ` + start + `, go: {}}
`)
		if got := f.Jobs[0].StartAt.Format(time.RFC3339); got != want || len(issues) > 0 {
			t.Errorf("start: %s is %s, want %s; %v", start, got, want, issues)
		}
	}
}

func TestNotesTellOfChangesOfClocks(t *testing.T) {
	t.Parallel()
	f, _ := text(`
version: 1
defaults: {timezone: Europe/Berlin, owner: a}
jobs:
  - name: recon
    kind: go
    schedule: "15 2 * * *"
    go: {}
  - {name: often, kind: go, schedule: "*/15 * * * *", go: {}}
  - {name: noon, kind: go, schedule: "0 12 * * *", go: {}}
  - {name: broken, kind: go, schedule: "15 2 * * *", period: hourly, go: {}}
`)
	from := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	got := jobfile.Lines(f.Notes(from, from.AddDate(1, 0, 0)))
	want := "pawl.yaml:7:15  recon: 02:15 does not exist in Europe/Berlin on 2027-03-28; it will run at 03:00 that day (dst.gap: after). (note)\n" +
		"pawl.yaml:7:15  recon: 02:15 comes twice in Europe/Berlin on 2027-10-31; it will run in the first pass only (dst.overlap: first). (note)\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestRetiringManyJobsAtOnceIsRefused(t *testing.T) {
	t.Parallel()
	f, _ := text(`{version: 1, app: ledger, jobs: [{name: a, kind: go, schedule: "@daily", rename_from: old, go: {}}]}`)
	many := strings.Split("a old b c d e f g h i", " ")
	for _, test := range []struct {
		known []string
		allow int
		want  string
	}{
		{[]string{"a", "old"}, 0, ""},
		{[]string{"a", "b", "c"}, 0, ""}, // two jobs may go
		{many[:5], 0, `pawl.yaml  3 of 5 known jobs of app "ledger" are absent and would be retired. Pass --allow-retire 3 if intended.`},
		{many, 0, `pawl.yaml  8 of 10 known jobs of app "ledger" are absent and would be retired. Pass --allow-retire 8 if intended.`},
		{many, 7, `pawl.yaml  8 of 10 known jobs of app "ledger" are absent and would be retired. Pass --allow-retire 8 if intended.`},
		{many, 8, ""},
	} {
		got := strings.TrimSuffix(jobfile.Lines(f.CheckRetired(test.known, test.allow)), "\n")
		if got != test.want {
			t.Errorf("%v, allowed %d: %q, want %q", test.known, test.allow, got, test.want)
		}
	}
}

func TestRetiringThirtyPercentIsAllowed(t *testing.T) {
	t.Parallel()
	f, _ := text(`{version: 1, jobs: [` + strings.Repeat(`{kind: go, schedule: "@daily", go: {}}, `, 7) + `]}`)
	known := make([]string, 10)
	for i := range known {
		known[i] = string(rune('a' + i))
		if i < 7 {
			f.Jobs[i].Name = known[i]
		}
	}
	if got := f.CheckRetired(known, 0); got != nil {
		t.Errorf("3 of 10: %v, want none", got)
	}
	if got := f.CheckRetired(known[:9], 0); got != nil {
		t.Errorf("2 of 9: %v, want none", got)
	}
	f.Jobs = f.Jobs[:6]
	if got := f.CheckRetired(known[:9], 0); len(got) != 1 {
		t.Errorf("3 of 9: %v, want one", got)
	}
}
