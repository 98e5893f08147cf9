package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

// runExample serves an example's directory as its readers would, and triggers its job.
func runExample(t *testing.T, kind, job string) (db string) {
	t.Helper()
	db, dir := pgtest.URL(t), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../examples/jobfile", kind))); err != nil {
		t.Fatal(err)
	}
	code, out, said := runPawl(t, "lint", filepath.Join(dir, "pawl.yaml"))
	if code != codeOK || strings.Contains(out, "(warning") {
		t.Fatalf("exit code %d: %s%s", code, out, said)
	}
	p := startIn(t, dir, []string{"DATABASE_URL=" + db}, "serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--health-listen", "127.0.0.1:0")
	p.hears(t, 20*time.Second, "runner started")
	if kind == "http" { // its port is one that others may use here
		rename(t, filepath.Join(dir, "pawl.yaml"), "http://127.0.0.1:8399", addresses(p)[0])
		p.signal(t, 1)
		p.hears(t, 20*time.Second, "job file reloaded")
	}
	// Its own tick may have come in this moment, and have been done.
	if code, _, said := runPawl(t, "job", "trigger", job, "--database-url", db); code != codeOK && code != codeConflict {
		t.Fatalf("exit code %d: %s", code, said)
	}
	pgtest.Eventually(t, 30*time.Second, job+" is complete", func() bool {
		dead := answer(t, db, `select coalesce(max(error), '') from pawl.runs where job = $1 and state = 'failed'`, job)
		if dead != "" {
			t.Fatalf("%s failed: %s", job, dead)
		}
		return answer(t, db, ranSQL, job) == "true"
	})
	return db
}

func TestTheExampleOfACommandRuns(t *testing.T) {
	t.Parallel()
	db := runExample(t, "command", "report")
	if answer(t, db, saidSQL, "report", "part 1 of the report on %") != "true" {
		t.Error("its output is not kept")
	}
	if got := answer(t, db, `select done || '/' || total from pawl.runs where job = 'report'`); got != "3/3" {
		t.Errorf("progress %s", got)
	}
}

func TestTheExampleOfSQLRuns(t *testing.T) {
	t.Parallel()
	db := runExample(t, "sql", "count_runs")
	if got := answer(t, db, `select count(*) || ' ' || min(source) from runs_by_hour`); got != "1 scheduled" {
		t.Errorf("it wrote %s", got)
	}
}

func TestTheExampleOfHTTPRuns(t *testing.T) {
	t.Parallel()
	runExample(t, "http", "ask")
}

func TestTheExampleOfShardsRuns(t *testing.T) {
	t.Parallel()
	db := runExample(t, "shards", "statements")
	const parts = `select bool_and(convert_from(o.head, 'UTF8') like 'statements of ' || split_part(r.key, '#', 2) || ' on ' || split_part(r.key, '#', 1) || ', part _ of 3, under ' || r.lock || ' and token %')
		|| ' ' || count(*) from pawl.runs r join pawl.outputs o on o.run = r.id where r.key like '%#%'`
	if got := answer(t, db, parts); got != "true 3" {
		t.Errorf("its shards have said %s", got)
	}
	north := answer(t, db, `select key from pawl.runs where key like '%#north'`)
	if code, out, said := runPawl(t, "job", "output", "statements", north, "--database-url", db); code != codeOK || !strings.HasPrefix(out, "statements of north on ") {
		t.Errorf("exit code %d: %s%s", code, out, said)
	}
	if got := answer(t, db, `select count(*) || ' ' || min(regions) from statements_by_day`); got != "1 3" {
		t.Errorf("it is reduced to %s", got)
	}
}

func TestTheExampleOfGoRuns(t *testing.T) {
	t.Parallel()
	runExample(t, "go", "settlement")
}
