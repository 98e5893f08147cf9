package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pawl/internal/pgtest"
)

// blocks are the fenced examples of a page in one language.
func blocks(t *testing.T, page, language string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(readFile(t, "docs", page), -1) {
		all = append(all, m[1])
	}
	return all
}

// psql runs a script as the page says.
func psql(t *testing.T, db, holder, script string, more ...string) (out string, err error) {
	t.Helper()
	bin, err := exec.LookPath("psql")
	if err != nil {
		t.Fatalf("%v: it comes with Postgres' client", err)
	}
	file := filepath.Join(t.TempDir(), "settle.sql")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{db, "-X", "-At", "-v", "ON_ERROR_STOP=1", "-v", "holder=" + holder, "-f", file}, more...)
	b, err := exec.CommandContext(t.Context(), bin, args...).CombinedOutput()
	return string(b), err
}

func TestTheSQLPagesExampleWorks(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	owner := pgtest.Open(t, db)
	if _, err := owner.Exec(t.Context(), "create table account (id int primary key, balance int, last_token bigint); insert into account values (42, 100)"); err != nil {
		t.Fatal(err)
	}
	examples := blocks(t, "sql.md", "sql")
	if len(examples) != 3 {
		t.Fatalf("%d examples, want 3", len(examples))
	}
	whole, claim := examples[0], examples[2]
	out, err := psql(t, db, "a/1", whole)
	if err != nil || !strings.Contains(out, "renewed|20") || !strings.HasSuffix(out, "\nreleased\n") {
		t.Errorf("%v: %s", err, out)
	}
	const fact = `select balance = 70 and (select count(*) = 1 from pawl.tenures where lock = 'payments:settle' and how = 'released' and holder = 'a/1' and beats = 1) from account`
	if !one[bool](t, db, fact) {
		t.Error("it has not written, or not held")
	}

	// Who has the lock keeps the next one out.
	acquire, _, _ := strings.Cut(whole, "-- 2.")
	if out, err := psql(t, db, "b/2", acquire); err != nil || strings.Contains(out, "not had") {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := psql(t, db, "c/3", whole); err != nil || !strings.Contains(out, "not had: held") {
		t.Errorf("%v: %s", err, out)
	}
	token := one[string](t, db, `select token::text from pawl.locks`)
	if out, err := psql(t, db, "b/2", claim, "-v", "token="+token); err != nil || !strings.Contains(out, "f|"+token) {
		t.Errorf("%v: %s", err, out)
	}
	// A lease that is gone stops the commit.
	force(t, db)
	_, rest, _ := strings.Cut(whole, "-- 2.")
	if out, err := psql(t, db, "b/2", "--"+rest, "-v", "token="+token); err == nil || !strings.Contains(out, "[PW002]") {
		t.Errorf("%v: %s", err, out)
	}
	if !one[bool](t, db, `select balance = 70 from account`) {
		t.Error("a lost lease has written")
	}
}

// force ends the only lease.
func force(t *testing.T, db string) {
	t.Helper()
	pool := pgtest.Open(t, db)
	if _, err := pool.Exec(context.WithoutCancel(t.Context()), "update pawl.locks set grant_id = null, holder = null, key = null, expires_at = null"); err != nil {
		t.Fatal(err)
	}
}

// What the page says of a function has to be there, with as many arguments.
func TestTheSQLPageNamesFunctionsThatExist(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	named := regexp.MustCompile("(?m)^\\| `pawl\\.(\\w+)\\(([^)]*)\\)`").FindAllStringSubmatch(readFile(t, "docs", "sql.md"), -1)
	if len(named) < 9 {
		t.Fatalf("%d functions: is the pattern right?", len(named))
	}
	for _, m := range named {
		var takes bool
		const sql = `select coalesce(bool_or($2 between pronargs - pronargdefaults and pronargs), false) from pg_proc where pronamespace = 'pawl'::regnamespace and proname = $1`
		if err := pool.QueryRow(t.Context(), sql, m[1], strings.Count(strings.TrimSuffix(m[2], ", …"), ",")+1).Scan(&takes); err != nil || !takes {
			t.Errorf("pawl.%s doesn't take (%s): %v", m[1], m[2], err)
		}
	}
}
