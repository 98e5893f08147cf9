package jobfile_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/jobs/jobfile"
	"pawl/jobs/schedule"
)

var update = flag.Bool("update", false, "write the golden files anew")

// secretValue is what every secret of the test files resolves to.
const secretValue = "s3cret-value"

// fakeEnv knows the variables whose names begin with FINE_.
func fakeEnv(name string) string {
	switch {
	case name == "FINE_WEBHOOK_URL":
		return "https://" + secretValue + "/hook"
	case strings.HasPrefix(name, "FINE_"):
		return secretValue
	}
	return ""
}

// parse reads a test file as the name that its issues show.
func parse(t *testing.T, path string) (*jobfile.File, []jobfile.Issue) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return jobfile.Parse(path, source, fakeEnv)
}

// said returns the issues as lint prints them, with the file's base name and without the
// version of the time zones.
func said(issues []jobfile.Issue) string {
	for i := range issues {
		issues[i].File = filepath.Base(issues[i].File)
	}
	return strings.ReplaceAll(jobfile.Lines(issues), "tzdata "+schedule.TZVersion(), "tzdata 20xx")
}

// golden compares got with a file, or writes it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew)\ngot:\n%swant:\n%s", path, got, want)
	}
}

func TestEveryWrongFileIsToldWhatIsWrong(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/lint/*.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d wrong files, %v; want at least 40", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			_, issues := parse(t, path)
			if len(issues) == 0 {
				t.Errorf("no issue")
			}
			text := said(issues)
			if strings.Contains(text, secretValue) || strings.Contains(text, "hunter2") {
				t.Errorf("a secret is shown:\n%s", text)
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".golden", text)
		})
	}
}
