package jobfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse feeds it anything: it must answer, with every issue in one line.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/lint/*.yaml", "testdata/ok/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			source, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(source)
		}
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		file, issues := Parse("testdata/lint/x.yaml", source, func(string) string { return "s3cret-value" })
		if file == nil && len(issues) == 0 {
			t.Error("neither a file nor an issue")
		}
		for _, i := range issues {
			if strings.Contains(i.String(), "\n") {
				t.Errorf("not one line: %q", i)
			}
			if strings.Contains(i.Text, "s3cret-value") && !strings.Contains(string(source), "s3cret") {
				t.Errorf("a secret is shown: %s", i)
			}
		}
	})
}
