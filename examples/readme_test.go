package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// README's Go is compiled elsewhere: each block stands, but for indentation, in an example.
func TestEveryGoBlockOfTheReadmeIsCompiled(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var compiled strings.Builder
	for _, pattern := range []string{"*/main.go", "../*/example_test.go", "settlement/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			compiled.WriteString(flat(string(b)))
		}
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) < 3 {
		t.Fatalf("%d Go blocks in the README, want at least 3", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(compiled.String(), flat(b[1])) {
			t.Errorf("this block is in no example:\n%s", b[1])
		}
	}
}

// flat leaves indentation out.
func flat(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}
