package kinds

import (
	"slices"
	"strings"
	"testing"
)

// texts are the statements of a text, trimmed, and which parameters each has.
func texts(sql string) (out []string, params [][]int) {
	for _, s := range split(sql) {
		text, of := s.text()
		out, params = append(out, strings.TrimSpace(text)), append(params, of)
	}
	return out, params
}

func TestTextIsSplitAtTheSemicolonsThatEndStatements(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sql  string
		want []string
	}{
		{"", nil},
		{" ; ;; -- nothing\n/* ; */", nil},
		{"select 1", []string{"select 1"}},
		{"select 1; select 2;", []string{"select 1", "select 2"}},
		{"select ';', 'it''s;', \";\", \"a\"\";\"; select 2", []string{"select ';', 'it''s;', \";\", \"a\"\";\"", "select 2"}},
		{`select E'\';', 'a\'; select 2`, []string{`select E'\';', 'a\'`, "select 2"}},
		{`select e'\\'; select 2`, []string{`select e'\\'`, "select 2"}},
		{`select name'x;y'; select 2`, []string{`select name'x;y'`, "select 2"}},
		{"do $$ begin; end $$; select 2", []string{"do $$ begin; end $$", "select 2"}},
		{"do $a$ $b$; $$; $a$; select 2", []string{"do $a$ $b$; $$; $a$", "select 2"}},
		{"select a$$; select b$x$", []string{"select a$$", "select b$x$"}},
		{"select 1 -- ; '\n; select 2", []string{"select 1 -- ; '", "select 2"}},
		{"select /* ; /* ' */ ; */ 1; select 2", []string{"select /* ; /* ' */ ; */ 1", "select 2"}},
		{"create rule r as on insert to t do (select 1; select 2); select 3", []string{"create rule r as on insert to t do (select 1; select 2)", "select 3"}},
		{
			"create or replace function f() returns int begin atomic select case when true then 1 end; select 2; end; select 3",
			[]string{"create or replace function f() returns int begin atomic select case when true then 1 end; select 2; end", "select 3"},
		},
		{"select case when 1 = 1 then 2 end; select 3", []string{"select case when 1 = 1 then 2 end", "select 3"}},
		{"select 'unclosed; select 2", []string{"select 'unclosed; select 2"}},
		{"select $x; select 2", []string{"select $x", "select 2"}},
		{"select 1 as größe; select 'ü;'", []string{"select 1 as größe", "select 'ü;'"}},
		{"select 1e5, 0x1f, 1.5; select 2", []string{"select 1e5, 0x1f, 1.5", "select 2"}},
	} {
		if got, _ := texts(c.sql); !slices.Equal(got, c.want) {
			t.Errorf("%q:\n%q, want\n%q", c.sql, got, c.want)
		}
	}
}

func TestEachStatementHasItsOwnParameters(t *testing.T) {
	t.Parallel()
	got, params := texts("insert into a values ($2, $1, $2); select '$1', \"$2\", $$ $3 $$, -- $4\n a$5, $3; select 1")
	want := []string{"insert into a values ($1, $2, $1)", "select '$1', \"$2\", $$ $3 $$, -- $4\n a$5, $1", "select 1"}
	if !slices.Equal(got, want) || !slices.EqualFunc(params, [][]int{{2, 1}, {3}, nil}, slices.Equal) {
		t.Errorf("%q %v", got, params)
	}
}

func TestStatementsThatOutliveTheirTransactionAreFound(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]bool{
		"begin": true, "START transaction": true, "/* x */ commit": true, "end": true, "abort": true, "rollback": true, "rollback and chain": true,
		"prepare transaction 'x'": true, "set search_path = x": true, "SET SESSION a.b = 1": true, "set role x": true,
		"rollback to s": false, "rollback work to savepoint s": false, "savepoint s": false, "set local search_path = x": false,
		"set constraints all deferred": false, "set transaction read only": false, "prepare p as select 1": false, "select 1": false, "(select 1)": false, "1": false,
	} {
		if got := refusedStatement(split(sql)[0].words); got != want {
			t.Errorf("%q: %v", sql, got)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"select 1; select $1", "E'\\'", "$a$;$a$", "/*/**/", "create function f() begin atomic", "'", "--", "$", "$1", "é$é$"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		rest := sql
		for _, s := range split(sql) {
			if len(s.pieces) != len(s.params)+1 {
				t.Fatalf("%d pieces and %d parameters", len(s.pieces), len(s.params))
			}
			for _, piece := range s.pieces { // nothing is invented, and nothing changes its place
				_, after, found := strings.Cut(rest, piece)
				if !found {
					t.Fatalf("%q is not in %q", piece, rest)
				}
				rest = after
			}
		}
	})
}
