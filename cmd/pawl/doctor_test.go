package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A page of the runbook that is named to people has to be there.
func TestNamedPagesOfTheRunbookExist(t *testing.T) {
	t.Parallel()
	runbook, err := os.ReadFile(filepath.Join("..", "..", "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\bPawl[A-Z]\w+`)
	count := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range named.FindAllString(string(source), -1) {
			count++
			if !strings.Contains(string(runbook), "\n## "+name+"\n") {
				t.Errorf("%s names %s, which docs/runbook.md doesn't have", file, name)
			}
		}
	}
	if count < 2 {
		t.Errorf("%d names found: the pattern doesn't match any more", count)
	}
}
