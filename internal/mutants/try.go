package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const tooBig = 5 << 20 // no source file is: a binary that lies in the tree isn't copied

// try tests ms one after the other in a copy of the tree at root. It returns how many were not caught.
func try(ctx context.Context, out io.Writer, root string, ms []mutant) (bad int, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := copyTree(root, dir); err != nil {
		return 0, err
	}
	red := notGreen(ctx, out, dir, ms)
	for _, m := range ms {
		start, verdict, caught := time.Now(), "NOT GREEN", false // without the patch, that is
		if !red[m.pkg+m.test] {
			if verdict, caught, err = tryOne(ctx, dir, m); err != nil {
				return bad, err
			}
		}
		say(out, "%-10s %5.1fs  %s: %s %s", verdict, time.Since(start).Seconds(), m.name, m.pkg, m.test)
		if !caught {
			bad++
			say(out, "  %s", m.says)
		}
	}
	return bad, nil
}

// copyTree copies the regular files of the working tree, committed or not.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != from && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil || info.Size() > tooBig {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		return errors.Join(os.MkdirAll(filepath.Dir(target), 0o700), os.WriteFile(target, data, 0o600))
	})
}

// notGreen runs the named tests of each package once without a patch, and returns those that don't pass: a test that is
// red anyway notices nothing.
func notGreen(ctx context.Context, out io.Writer, dir string, ms []mutant) map[string]bool {
	tests, red := map[string][]string{}, map[string]bool{}
	for _, m := range ms {
		if !slices.Contains(tests[m.pkg], m.test) {
			tests[m.pkg] = append(tests[m.pkg], m.test)
		}
	}
	for pkg, names := range tests {
		start, bad := time.Now(), 0
		text, _ := goTest(ctx, dir, pkg, names...) // what counts is which test says that it has passed
		for _, name := range names {
			if !strings.Contains(text, "--- PASS: "+name+" ") {
				red[pkg+name] = true
				bad++
			}
		}
		say(out, "%-10s %5.1fs  %s: %d of %d tests, without a patch", "green", time.Since(start).Seconds(), pkg, len(names)-bad, len(names))
		if bad > 0 {
			say(out, "%s", tail(text))
		}
	}
	return red
}

// tryOne leaves dir as it was.
func tryOne(ctx context.Context, dir string, m mutant) (verdict string, caught bool, err error) {
	before := map[string][]byte{}
	for _, f := range m.files {
		if before[f], err = os.ReadFile(filepath.Join(dir, f)); err != nil {
			return "NO FILE " + f, false, nil // the patch is out of date; the others go on
		}
	}
	defer func() {
		for f, data := range before {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, f), data, 0o600))
		}
	}()
	if text, err := apply(ctx, dir, m); err != nil {
		return "DOES NOT APPLY\n" + text, false, nil
	}
	text, err := goTest(ctx, dir, m.pkg, m.test)
	verdict, caught = judge(text, err, m.test)
	return verdict, caught, ctx.Err()
}

// badSQL is a statement that no server takes: a mutant that is misspelt breaks no rule.
var badSQL = regexp.MustCompile(`SQLSTATE 42[0-9A-Z]{3}`)

// judge tells a test that failed from one that was not run.
func judge(text string, err error, test string) (verdict string, caught bool) {
	switch {
	case strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]"):
		return "DOES NOT COMPILE\n" + tail(text), false
	case err == nil:
		return "NOT CAUGHT", false
	case badSQL.MatchString(text): // else any test would do
		return "BAD SQL\n" + tail(text), false
	case strings.Contains(text, "--- FAIL: "+test+" ") || strings.Contains(text, "panic: test timed out"):
		return "caught", true
	}
	return "NO VERDICT\n" + tail(text), false
}

// apply needs no repository, and must not find one around the copy.
func apply(ctx context.Context, dir string, m mutant, flags ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"apply", "--unidiff-zero", "--whitespace=nowarn"}, flags...)...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(m.patch)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "LC_ALL=C")
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// goTest leaves vet out: a patch may well be bad style.
func goTest(ctx context.Context, dir, pkg string, tests ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-vet=off", "-timeout=2m",
		"-run", "^("+strings.Join(tests, "|")+")$", pkg)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func tail(s string) string { return s[max(0, len(s)-3000):] }
