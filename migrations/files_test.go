package migrations

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// takesAway finds what a binary of the release before can't live with.
var takesAway = regexp.MustCompile(`(?i)\bdrop\b|\brename\b|\btruncate\b|\balter\b[^;]*\btype\b`)

func TestMigrationsOnlyAdd(t *testing.T) {
	t.Parallel()
	for _, m := range known() {
		if m.Version == riverNumber || m.Version == 1 {
			continue
		}
		text, err := files.ReadFile("sql/" + m.Name + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		if found := takenAway(string(text)); found != "" {
			t.Errorf("%s takes something away: %q", m.Name, found)
		}
	}
}

// takenAway looks at the way up only, without comments, strings and the
// bodies of functions, and lets a trigger react to TRUNCATE.
func takenAway(text string) string {
	text = upOf(text)
	for _, skip := range []string{`(?m)--.*$`, `(?s)\$(\w*)\$.*?\$\w*\$`, `'[^']*'`, `(?i)before truncate`} {
		text = regexp.MustCompile(skip).ReplaceAllString(text, " ")
	}
	return takesAway.FindString(text)
}

func TestTheRuleFindsWhatTakesAway(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"alter table pawl.runs drop column done;", "DROP TABLE pawl.runs;", "alter table pawl.runs rename to r;",
		"alter table pawl.runs\n alter column done type int;", "truncate pawl.runs;",
	} {
		if takenAway("-- +goose Up\n"+bad) == "" {
			t.Errorf("passes: %s", bad)
		}
	}
	const good = "-- +goose Up\n-- drop nothing\nalter table pawl.runs add column note text;\n" +
		"create function f() returns text language sql as $$ select 'drop' $$;\n-- +goose Down\ndrop function f();"
	if found := takenAway(good); found != "" {
		t.Errorf("refuses %q", found)
	}
}

func TestMigrationsAreNumberedWithoutAGap(t *testing.T) {
	t.Parallel()
	for i, m := range known() {
		if m.Version != int64(i+1) || !strings.HasPrefix(m.Name, fmt.Sprintf("%05d_", i+1)) {
			t.Errorf("place %d has %+v", i+1, m)
		}
	}
}
