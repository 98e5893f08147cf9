package jobfile_test

import (
	"fmt"
	"testing"
	"time"

	"pawl/jobs/jobfile"
	"pawl/jobs/kinds"
)

// job parses one job of kind go with a few more fields.
func job(fields string) (jobfile.Job, []string) {
	f, issues := text(`{version: 1, jobs: [{name: a, kind: go, schedule: "@daily", go: {}, ` + fields + `}]}`)
	if f == nil || len(f.Jobs) != 1 {
		return jobfile.Job{}, errors(issues)
	}
	return f.Jobs[0], errors(issues)
}

func TestDurationsHaveDays(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * day, "1d12h": 36 * time.Hour, "1.5h": 90 * time.Minute,
		"36500d": 36500 * day, "none": jobfile.NoTimeout,
	} {
		if got, errs := job("timeout: " + text); got.Timeout != want || errs != nil {
			t.Errorf("timeout: %s is %v, want %v; %v", text, got.Timeout, want, errs)
		}
	}
	for _, text := range []string{"5", "1.5", "d", "1.5d", "-1d", "1d-1h", "-5s", "h", "1 h", "99999999d", "65535d9999999h", "9999999999h", "1w", "0s", "999ms", "''"} {
		if got, errs := job("timeout: " + text); len(errs) != 1 {
			t.Errorf("timeout: %s is %v without an error; %v", text, got.Timeout, errs)
		}
	}
}

func TestSizesAreBinary(t *testing.T) {
	t.Parallel()
	parse := func(size string) (jobfile.Size, []string) {
		f, issues := text(`{version: 1, jobs: [{name: a, kind: command, schedule: "@daily", command: {argv: [x], output: {max: ` + size + `}}}]}`)
		return f.Jobs[0].Command.Output.Max, errors(issues)
	}
	for text, want := range map[string]jobfile.Size{"1024B": 1 << 10, "64KiB": 64 << 10, "1MiB": 1 << 20, "3 MiB": 3 << 20} {
		if got, errs := parse(text); got != want || errs != nil {
			t.Errorf("max: %s is %d, want %d; %v", text, got, want, errs)
		}
	}
	for _, text := range []string{"1", "1MB", "1mib", "-1MiB", "1.5MiB", "1GiB", "1B", "9999999999MiB"} {
		if got, errs := parse(text); len(errs) != 1 {
			t.Errorf("max: %s is %d without an error; %v", text, got, errs)
		}
	}
	for size, want := range map[jobfile.Size]string{0: "0B", 5: "5B", 1 << 10: "1KiB", 1536: "1536B", 256 << 10: "256KiB", 1 << 20: "1MiB", 2 << 30: "2GiB"} {
		if size.String() != want {
			t.Errorf("%d prints as %s, want %s", int64(size), size, want)
		}
	}
}

func TestRowsAreACondition(t *testing.T) {
	t.Parallel()
	for condition, met := range map[string][3]bool{ // by 4, 5 and 6 rows
		`5`: {false, true, false}, `"=5"`: {false, true, false}, `"!=5"`: {true, false, true},
		`">5"`: {false, false, true}, `">= 5"`: {false, true, true}, `"<5"`: {true, false, false}, `"<=5"`: {true, true, false},
	} {
		f, issues := text(`{version: 1, jobs: [{name: a, kind: sql, schedule: "@daily", sql: {statement: x, expect: {rows: ` + condition + `}}}]}`)
		if errs := errors(issues); errs != nil {
			t.Fatalf("%s: %v", condition, errs)
		}
		for i, want := range met {
			if got := kinds.Rows(f.Jobs[0].SQL.Expect.Rows).Met(int64(4 + i)); got != want {
				t.Errorf("%d rows meet %s: %v, want %v", 4+i, condition, got, want)
			}
		}
	}
	if !(kinds.Rows{}).Met(7) {
		t.Error("no condition is not met")
	}
	if got := fmt.Sprint(jobfile.Rows{Op: ">", N: 0}, jobfile.Rows{}); got != ">0 " {
		t.Errorf("prints as %q", got)
	}
}

func TestSlipsAreRecognised(t *testing.T) {
	t.Parallel()
	for slip, want := range map[string]string{
		"time_out": "timeout", "Timeout": "timeout", "catchup": "catch_up", "due-by": "due_by", "shedule": "schedule",
		"onwer": "owner", "time_zone": "timezone", "retry": "", "cron": "", "xyz": "",
	} {
		_, errs := job(slip + ": 1")
		text := fmt.Sprintf("a: unknown key %q.", slip)
		if want != "" {
			text += fmt.Sprintf(" Did you mean %q?", want)
		}
		if len(errs) != 1 || errs[0] != text {
			t.Errorf("%s: %v, want %q", slip, errs, text)
		}
	}
}

func TestLinesAlignTheirTexts(t *testing.T) {
	t.Parallel()
	got := jobfile.Lines([]jobfile.Issue{
		{File: "pawl.yaml", Line: 22, Col: 5, Text: "a: b.", Severity: jobfile.Error},
		{File: "pawl.yaml", Line: 14, Col: 15, Text: "c.", Severity: jobfile.Warning},
		{File: "pawl.yaml", Line: 14, Col: 15, Text: "d.", Severity: jobfile.Warning, Strict: true},
		{File: "pawl.yaml", Text: "e.", Severity: jobfile.Note},
	})
	want := "pawl.yaml:22:5   a: b.\n" +
		"pawl.yaml:14:15  c. (warning)\n" +
		"pawl.yaml:14:15  d. (warning; error with --strict)\n" +
		"pawl.yaml        e. (note)\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestOnlyStrictnessMakesAWarningFail(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		issue         jobfile.Issue
		plain, strict bool
	}{
		{jobfile.Issue{Severity: jobfile.Error}, true, true},
		{jobfile.Issue{Severity: jobfile.Warning}, false, false},
		{jobfile.Issue{Severity: jobfile.Warning, Strict: true}, false, true},
		{jobfile.Issue{Severity: jobfile.Note}, false, false},
	} {
		list := []jobfile.Issue{test.issue}
		if jobfile.Failed(list, false) != test.plain || jobfile.Failed(list, true) != test.strict {
			t.Errorf("%+v: %v, strictly %v", test.issue, jobfile.Failed(list, false), jobfile.Failed(list, true))
		}
	}
}

func TestTheWorstIssueCounts(t *testing.T) {
	t.Parallel()
	list := []jobfile.Issue{{Severity: jobfile.Warning}, {Severity: jobfile.Error}, {Severity: jobfile.Note}}
	for n, want := range []jobfile.Severity{-1, jobfile.Warning, jobfile.Error, jobfile.Error} {
		if got := jobfile.Worst(list[:n]); got != want {
			t.Errorf("the worst of %d is %d, want %d", n, got, want)
		}
	}
}
