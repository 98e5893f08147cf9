package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestEveryMutantStillAppliesAndNamesATest(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	ms, err := load(".")
	if err != nil || len(ms) < 15 {
		t.Fatalf("%d patches, %v", len(ms), err)
	}
	dir := t.TempDir()
	if err := copyTree(root, dir); err != nil {
		t.Fatal(err)
	}
	for _, m := range ms {
		if text, err := apply(t.Context(), dir, m, "--check"); err != nil {
			t.Errorf("%s.patch doesn't apply any more: write it anew: %s", m.name, text)
		}
		if !hasTest(t, filepath.Join(dir, m.pkg), m.test) {
			t.Errorf("%s.patch names %s %s, which is no test", m.name, m.pkg, m.test)
		}
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	is := regexp.MustCompile(`(?m)^func ` + name + `\(`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if is.Match(text) {
			return true
		}
	}
	return false
}

// small is a module with one rule, a test that knows it and one that doesn't.
var small = map[string]string{
	"go.mod": "module small\n\ngo 1.26\n",
	"p/p.go": "package p\n\nfunc Two() int {\n\treturn 2\n}\n",
	"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Error(\"not two\")\n\t}\n}\n\n" +
		"func TestNothing(*testing.T) {}\n\nfunc TestRed(t *testing.T) { t.Error(\"always\") }\n",
}

func mutate(t *testing.T, test, old, fresh string) mutant {
	t.Helper()
	m, err := parse("m", "test: ./p "+test+"\nIt says so.\n\n--- a/p/p.go\n+++ b/p/p.go\n@@ -4 +4 @@\n-\treturn "+old+"\n+\treturn "+fresh+"\n")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOnlyATestThatTurnsRedCatches(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range small {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	bad, err := try(t.Context(), &out, root, []mutant{
		mutate(t, "TestTwo", "2", "3"),
		mutate(t, "TestNothing", "2", "3"),
		mutate(t, "TestTwo", "2", `"2"`),
		mutate(t, "TestTwo", "5", "6"),
		mutate(t, "TestRed", "2", "3"),
		mutate(t, "TestAbsent", "2", "3"),
	})
	if err != nil || bad != 5 {
		t.Errorf("%d not caught, %v; want 5", bad, err)
	}
	for want, times := range map[string]int{"\ncaught ": 1, "\nNOT CAUGHT ": 1, "\nDOES NOT COMPILE": 1, "\nDOES NOT APPLY": 1, "\nNOT GREEN ": 2} {
		if n := strings.Count("\n"+out.String(), want); n != times {
			t.Errorf("%q is there %d times, want %d, in:\n%s", want, n, times, &out)
		}
	}
	if text, err := os.ReadFile(filepath.Join(root, "p/p.go")); err != nil || string(text) != small["p/p.go"] {
		t.Errorf("the tree itself was changed: %q, %v", text, err)
	}
}

func TestTheDateChoosesOneAfterTheOther(t *testing.T) {
	t.Parallel()
	ms := []mutant{{name: "a"}, {name: "b"}, {name: "c"}}
	day := time.Date(2026, 9, 16, 0, 0, 0, 0, time.UTC)
	seen := map[string]bool{}
	for i := range ms {
		chosen, err := choose(ms, true, nil, day.AddDate(0, 0, i))
		if err != nil || len(chosen) != 1 {
			t.Fatalf("%v, %v", chosen, err)
		}
		seen[chosen[0].name] = true
	}
	if len(seen) != 3 {
		t.Errorf("three days chose %v", seen)
	}
	if chosen, err := choose(ms, false, []string{"b"}, day); err != nil || len(chosen) != 1 || chosen[0].name != "b" {
		t.Errorf("by name: %v, %v", chosen, err)
	}
	if _, err := choose(ms, false, []string{"d"}, day); err == nil {
		t.Error("a name that is none is not told")
	}
}

func TestAPatchWithoutItsHeaderIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "--- a/x\n+++ b/x\n", "test: jobs TestX\nwhy\n+++ b/x\n", "test: ./jobs TestX\nwhy\n"} {
		if _, err := parse("x", text); err == nil {
			t.Errorf("%q is taken for a patch", text)
		}
	}
}

func TestAMisspeltStatementCatchesNothing(t *testing.T) {
	t.Parallel()
	red := errors.New("exit status 1")
	for text, want := range map[string]bool{
		"--- FAIL: TestX (0.01s)\n x_test.go:3: 2 rows\n":                               true,
		"panic: test timed out after 2m0s\n":                                            true,
		"--- FAIL: TestX (0.01s)\n x_test.go:3: ERROR: syntax error (SQLSTATE 42601)\n": false,
		"--- FAIL: TestY (0.01s)\n":                                                     false,
	} {
		if verdict, caught := judge(text, red, "TestX"); caught != want {
			t.Errorf("%q is %s", text, verdict)
		}
	}
}
