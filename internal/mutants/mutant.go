package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// mutant is one patch.
type mutant struct {
	name  string // the file's, without .patch
	pkg   string // of the test, such as ./jobs
	test  string
	says  string   // which rule it breaks
	files []string // that it changes, from the module's root
	patch string   // the whole text
}

var (
	header  = regexp.MustCompile(`\Atest: (\./\S+) (Test\w+)\n(.+)\n`)
	changed = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)`)
)

func parse(name, text string) (mutant, error) {
	h := header.FindStringSubmatch(text)
	if h == nil {
		return mutant{}, fmt.Errorf("mutants: %s.patch: begin it with \"test: ./package TestName\" and, below, a sentence", name)
	}
	m := mutant{name: name, pkg: h[1], test: h[2], says: h[3], patch: text}
	for _, f := range changed.FindAllStringSubmatch(text, -1) {
		m.files = append(m.files, f[1])
	}
	if len(m.files) == 0 {
		return mutant{}, fmt.Errorf("mutants: %s.patch changes no file: give it a diff with a/ and b/", name)
	}
	return m, nil
}

// load reads all patches of dir, by name.
func load(dir string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	var ms []mutant
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimSuffix(filepath.Base(path), ".patch"), string(text))
		if err != nil {
			return nil, err
		}
		ms = append(ms, m)
	}
	return ms, nil
}

// choose picks by name, or the day's, or takes all.
func choose(ms []mutant, byDate bool, names []string, now time.Time) ([]mutant, error) {
	if byDate && len(ms) > 0 {
		day := int(now.Unix() / (24 * 60 * 60))
		return ms[day%len(ms):][:1], nil
	}
	if len(names) == 0 {
		return ms, nil
	}
	var chosen []mutant
	for _, name := range names {
		i := slices.IndexFunc(ms, func(m mutant) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("mutants: no patch %q: give the name of a file in internal/mutants, without .patch", name)
		}
		chosen = append(chosen, ms[i])
	}
	return chosen, nil
}
