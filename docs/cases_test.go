package docs_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The cases that pawl has to stand, from and to.
var cases = [][2]int{
	{1, 10}, {12, 14}, {16, 23}, {25, 34}, {36, 41}, {43, 53}, {55, 59}, {61, 63}, {65, 66}, {68, 68}, {70, 71}, {74, 75},
}

func TestEveryCaseHasItsLineAndATest(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, c := range cases {
		for n := c[0]; n <= c[1]; n++ {
			want = append(want, strconv.Itoa(n))
		}
	}
	production, _, _ := strings.Cut(read(t, "cases.md"), "\n## ")
	for _, row := range rows(production) {
		got = append(got, row[0])
		if len(row) != 4 || row[1] == "" || !strings.HasSuffix(row[2], ".") || !named.MatchString(row[3]) {
			t.Errorf("case %s: want whom it bit, a sentence and a test", row[0])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("cases %v, want %v", got, want)
	}
}

// Every complaint about a page has its line, in its place: with a test, or with why there is none.
func TestEveryComplaintHasItsLineAndATestOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	const complaints, untested = 45, 4
	left := 0
	lines := rows(section(t, read(t, "cases.md"), "What people ask of dashboards"))
	for i, row := range lines {
		if len(row) != 3 || row[0] != strconv.Itoa(i+1) || !strings.HasSuffix(row[1], ".") && !strings.HasSuffix(row[1], "?") {
			t.Errorf("line %d: %q, want a number and a sentence", i+1, row)
			continue
		}
		switch reason, ok := strings.CutPrefix(row[2], "left: "); {
		case ok && strings.HasSuffix(reason, "."):
			left++
		case ok || !named.MatchString(row[2]):
			t.Errorf("complaint %s: want a test, or left: and why", row[0])
		}
	}
	if len(lines) != complaints || left > untested {
		t.Errorf("%d complaints of which %d have no test, want %d and %d at most", len(lines), left, complaints, untested)
	}
}

// Ticks, triggers, reruns and backfills become rows by one statement, so that none of them can pass its key by.
func TestPeriodsComeInByOneStatement(t *testing.T) {
	t.Parallel()
	var found []string
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/testdata/") || !slices.Contains([]string{".go", ".sql"}, filepath.Ext(file)) {
			return err
		}
		for range strings.Count(read(t, file), "insert into pawl.periods") {
			found = append(found, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// A message's period has a key of its own, made where it is enqueued; a shard's begins with its period's.
	if !slices.Equal(found, []string{"../jobs/owe.go", "../migrations/sql/00010_effects.sql", "../migrations/sql/00012_shards.sql"}) {
		t.Errorf("periods are inserted in %q, want one place in jobs, pawl.enqueue and pawl.fan_out", found)
	}
}
