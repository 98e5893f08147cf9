package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// section is what stands under a heading, up to the next of the same or a higher level.
func section(t *testing.T, page, title string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n## "+title+"\n")
	if !ok {
		t.Fatalf("there is no heading %q", title)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// rows are the cells of a page's tables, without their heads.
func rows(page string) (out [][]string) {
	head := true
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			head = true
		case strings.HasPrefix(line, "|---"):
			head = false
		case !head:
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			out = append(out, cells)
		}
	}
	return out
}

var (
	goTest = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	// named is a test in the text of a page: its directory, its name, and the script that it runs.
	named = regexp.MustCompile(`(?:([a-z][\w/]*)\.)?\b(Test[A-Z]\w+)(?:/(\w+))?`)
)

// tests are the names of all tests, by directory.
func tests(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(file, "../")))
		for _, m := range goTest.FindAllStringSubmatch(read(t, file), -1) {
			found[dir] = append(found[dir], m[1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A claim that names a test which is gone proves nothing.
func TestEveryTestThatTheDocsNameExists(t *testing.T) {
	t.Parallel()
	there := tests(t)
	everywhere := slices.Concat(slices.Collect(maps.Values(there))...)
	pages := []string{"../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "../CHANGELOG.md"}
	err := filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(file, ".md") {
			pages = append(pages, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	mentions := 0
	for _, page := range pages {
		for _, m := range named.FindAllStringSubmatch(read(t, page), -1) {
			mentions++
			among := everywhere
			if m[1] != "" {
				among = there[m[1]]
			}
			if !slices.Contains(among, m[2]) {
				t.Errorf("%s names %s, which is no test there", page, m[0])
			}
			if m[3] == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", m[1], "testdata", m[3]+".txtar")); err != nil {
				t.Errorf("%s names %s, which has no such script", page, m[0])
			}
		}
	}
	if mentions < 100 {
		t.Errorf("%d mentions: is the pattern right?", mentions)
	}
}

// Claims are T1, T2, … in each section's own letter.
func TestEveryClaimHasANumberAStatementAndATest(t *testing.T) {
	t.Parallel()
	claim := regexp.MustCompile(`^\*\*([A-Z])(\d+)\*\* (.+)$`)
	last, claims := map[string]int{}, 0
	for _, row := range rows(read(t, "protocol.md")) {
		m := claim.FindStringSubmatch(row[0])
		if m == nil {
			if strings.HasPrefix(row[0], "**") {
				t.Errorf("%s is no claim", row[0])
			}
			continue
		}
		claims++
		if last[m[1]]++; m[2] != strconv.Itoa(last[m[1]]) {
			t.Errorf("claim %s%s comes after %s%d", m[1], m[2], m[1], last[m[1]]-1)
		}
		if len(row) != 2 || !named.MatchString(row[1]) {
			t.Errorf("claim %s%s has no test", m[1], m[2])
		}
	}
	if claims < 60 {
		t.Errorf("%d claims: is the pattern right?", claims)
	}
}

func TestEveryHoleHasASentenceAndATest(t *testing.T) {
	t.Parallel()
	holes := rows(section(t, read(t, "protocol.md"), "9. Holes that were found before building"))
	var want []string
	for i := 1; i <= 32; i++ {
		if i <= 12 || i == 14 || i >= 16 && i <= 25 || i == 28 || i == 29 || i == 32 { // the others belong to what is still to come
			want = append(want, strconv.Itoa(i))
		}
	}
	var got []string
	for _, row := range holes {
		got = append(got, row[0])
		if len(row) != 3 || !strings.HasSuffix(row[1], ".") || !named.MatchString(row[2]) {
			t.Errorf("hole %s: want a sentence and a test", row[0])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("holes %v, want %v", got, want)
	}
}

func TestEveryFailureHasATestOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	lines := rows(read(t, "failure-model.md"))
	for _, row := range lines {
		if len(row) != 4 || !named.MatchString(row[2]) && !strings.HasPrefix(row[2], "none: ") {
			t.Errorf("%s: no test", row[0])
		}
	}
	if len(lines) < 15 {
		t.Errorf("%d lines: is the pattern right?", len(lines))
	}
}

// errorsOf are the exported errors of a package: values Err…, and types …Error with a star.
func errorsOf(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for name, o := range objects(file) {
			switch pkg := file.Name.Name; {
			case o == ast.Var && strings.HasPrefix(name, "Err"):
				out = append(out, pkg+"."+name)
			case o == ast.Typ && strings.HasSuffix(name, "Error") && ast.IsExported(name):
				out = append(out, "*"+pkg+"."+name)
			}
		}
	}
	return out
}

// objects are the names of a file's own variables and types.
func objects(file *ast.File) map[string]ast.ObjKind {
	found := map[string]ast.ObjKind{}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				found[s.Name.Name] = ast.Typ
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if g.Tok == token.VAR {
						found[n.Name] = ast.Var
					}
				}
			}
		}
	}
	return found
}

// Whoever meets an error finds what it means and what to do.
func TestEveryErrorAndSQLSTATEIsExplained(t *testing.T) {
	t.Parallel()
	var want []string
	for _, dir := range []string{"../fence", "../lockrepo", "../lockrepo/keys", "../lockrepo/approvals", "../lockrepo/lockclient", "../jobs", "../jobs/schedule", "../migrations"} {
		found := errorsOf(t, dir)
		if len(found) == 0 {
			t.Errorf("%s has no errors: is the pattern right?", dir)
		}
		want = append(want, found...)
	}
	sqlstate := regexp.MustCompile(`\bPW\d{3}\b`)
	sources, err := filepath.Glob("../migrations/sql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range append(sources, "../fence/errors.go") {
		want = append(want, sqlstate.FindAllString(read(t, source), -1)...)
	}
	slices.Sort(want)
	want = slices.Compact(want)
	if len(want) < 40 {
		t.Errorf("%d errors and SQLSTATEs: is the pattern right?", len(want))
	}
	name := regexp.MustCompile("`([^`]+)`")
	var got []string
	for _, row := range rows(section(t, read(t, "protocol.md"), "10. Errors")) {
		if len(row) != 3 || row[1] == "" || row[2] == "" {
			t.Errorf("%s: want what it means and what to do", row[0])
		}
		for _, m := range name.FindAllStringSubmatch(row[0], -1) {
			got = append(got, m[1])
		}
	}
	slices.Sort(got)
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%s is not explained in docs/protocol.md", w)
		}
	}
	for i, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("docs/protocol.md explains %s, which doesn't exist", g)
		}
		if i > 0 && got[i-1] == g {
			t.Errorf("docs/protocol.md explains %s twice", g)
		}
	}
}
