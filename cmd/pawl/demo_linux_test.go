package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawl/internal/pgdev"
	"pawl/internal/pgtest"
)

// storyTime is what a story may take on a machine that is busy.
const storyTime = 3 * time.Minute

// verdictOf reads the one JSON value of a demo and compares what has to be so.
func verdictOf(t *testing.T, out string, payments int64) {
	t.Helper()
	var v verdict
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if dec.More() {
		t.Errorf("more than one value in %q", out)
	}
	if v.Periods != 5 || v.Complete != 5 || v.Takeovers < 2 || v.Runs < 7 || v.Refusals < 1 || !v.Resumed {
		t.Errorf("not as told: %+v", v)
	}
	if v.Payments != payments || v.Settled <= 0 || v.Fees <= 0 || v.Difference != 0 || v.Duplicates != 0 || v.Seconds <= 0 {
		t.Errorf("totals are wrong: %+v", v)
	}
}

func TestDemoTellsItsStoryInYourDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.Empty(t)
	p := start(t, nil, "demo", "--exit", "--json", "--payments", "5000", "--database-url", db)
	state := p.ends(t, storyTime)
	out, story := p.said()
	if !state.Success() {
		t.Fatalf("%v: %s", state, story)
	}
	verdictOf(t, out, 5000)
	for _, part := range []string{
		"(a) five days are owed", "(b) SIGKILL to worker-", "(c) SIGSTOP to worker-", "REFUSED: the write of worker-",
		"the database turns it away", "goes on from the checkpoint after batch", "(d) an independent statement", "Everything held",
	} {
		if !strings.Contains(story, part) {
			t.Errorf("the story lacks %q:\n%s", part, story)
		}
	}
	if !regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d{3}  worker-\d/\d+ takes \d{4}-\d\d-\d\d: run 1, token \d+·\d{6}$`).MatchString(story) {
		t.Errorf("no line with time, holder and token in\n%s", story)
	}
	if found := regexp.MustCompile(`(?m)^\S+ +1 +lost +.* [1-9]\d*/\d+ +\S+$`).FindAllString(story, -1); len(found) != 2 {
		t.Errorf("how far the lost runs came: %q in\n%s", found, story)
	}
	// The killed and the stopped run are lost, every day is complete, and the refused token is the stopped one's.
	if !one[bool](t, db, `
select (select count(*) from pawl.runs where state = 'lost') = 2
   and (select bool_and(f.token in (select token from pawl.runs where state = 'lost')) from pawl.refusals f)
   and (select bool_and(done > 0 and total >= done) from pawl.runs)
   and not exists (select from pawl_demo.settlement s join pawl.runs r on r.id = s.run where r.state not in ('complete', 'lost'))`) {
		t.Error("the rows say something else")
	}
	if code, _, said := runPawl(t, "demo", "--clean", "--database-url", db); code != codeOK {
		t.Errorf("clean: exit code %d, %s", code, said)
	}
	if one[bool](t, db, `select exists (select from pg_namespace where nspname like 'pawl%')`) {
		t.Error("clean has left a schema")
	}
}

func TestDemoRefusesSchemasThatItHasNotMade(t *testing.T) {
	t.Parallel()
	yours := pgtest.URL(t)
	before := one[int](t, yours, `select count(*) from pg_class`)
	example := pgtest.Empty(t)
	if _, err := pgtest.Open(t, example).Exec(t.Context(), "create schema pawl_demo; create table pawl_demo.dear (n int)"); err != nil {
		t.Fatal(err)
	}
	for _, db := range []string{yours, example} {
		for _, args := range [][]string{{"--exit"}, {"--clean"}} {
			code, _, said := runPawl(t, append([]string{"demo", "--database-url", db}, args...)...)
			if code != codeConflict || strings.Count(said, "\n") != 1 || !strings.Contains(said, "wasn't made by the demo") {
				t.Errorf("%v: exit code %d, %q", args, code, said)
			}
		}
	}
	if after := one[int](t, yours, `select count(*) from pg_class`); after != before {
		t.Errorf("%d relations became %d", before, after)
	}
	if !one[bool](t, example, `select to_regclass('pawl_demo.dear') is not null and to_regnamespace('pawl') is null`) {
		t.Error("something was dropped or made")
	}
}

func TestDemoLeavesNothingBehindWhenInterrupted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), strings.Repeat("long", 25)) // so long that the socket needs a directory of its own
	mark := "PAWL_TEST_MARK=" + rand.Text()
	// In the worst moment: one worker is killed, one is stopped.
	p := start(t, []string{mark}, "demo", "--exit", "--payments", "2000", "--data-dir", dir)
	p.hears(t, storyTime, "(c) SIGSTOP to worker-")
	sockets := socketDirs(t, mark)
	if len(sockets) == 0 {
		t.Fatal("the server is not among the processes")
	}
	p.signal(t, syscall.SIGINT)
	if state := p.ends(t, 30*time.Second); state.ExitCode() != codeFailed {
		t.Errorf("interrupted: %v", state)
	}
	if _, said := p.said(); !strings.Contains(said, "was stopped before its end") {
		t.Errorf("it said %q", said)
	}
	nothingLeft(t, mark, sockets)

	// The same directory again, to the end this time, and then the page.
	p = start(t, []string{mark}, "demo", "--json", "--payments", "2000", "--data-dir", dir)
	p.hears(t, storyTime, "until you press ^C")
	out, _ := p.said()
	verdictOf(t, out, 2000)
	page := p.hears(t, time.Second, "watch it at ")
	if status, body, err := fetch(t.Context(), page); err != nil || status != http.StatusOK || !strings.Contains(body, "job:settlement") {
		t.Errorf("page: %d, %v, %.300s", status, err, body)
	}
	sockets = socketDirs(t, mark)
	p.signal(t, syscall.SIGINT)
	if state := p.ends(t, 30*time.Second); !state.Success() {
		t.Errorf("after the story: %v", state)
	}
	nothingLeft(t, mark, sockets)
}

func TestDemoDirectoryInUseNamesDataDir(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "d")
	server, err := pgdev.Start(t.Context(), pgdev.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, args := range [][]string{{"--exit"}, {"--clean"}} {
		code, _, said := runPawl(t, append([]string{"demo", "--json", "--data-dir", dir}, args...)...)
		if last := said[strings.LastIndex(strings.TrimSpace(said), "\n")+1:]; code != codeConflict ||
			last != "pawl: another demo runs in "+dir+": end it first, or name another directory with --data-dir\n" {
			t.Errorf("%v: exit code %d, %q", args, code, said)
		}
	}
	if !hasData(dir) {
		t.Error("the data of a running server is gone")
	}
}

func TestDemoCleanRemovesItsDirectoryAndNoOther(t *testing.T) {
	t.Parallel()
	base := openDir(t)
	dir, other := filepath.Join(base, "ours"), filepath.Join(base, "yours")
	server, err := pgdev.Start(t.Context(), pgdev.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(other, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if code, _, said := runPawl(t, "demo", "--clean", "--data-dir", other); code != codeConflict || !strings.Contains(said, "wasn't made by the demo") {
		t.Errorf("another's: exit code %d, %q", code, said)
	}
	for _, want := range []string{`{"dropped":["` + dir + `"]}`, `{"dropped":[]}`} {
		if code, out, said := runPawl(t, "demo", "--clean", "--json", "--data-dir", dir); code != codeOK || out != want+"\n" {
			t.Errorf("exit code %d, %q, %q, want %s", code, out, said, want)
		}
	}
	left, err := os.ReadDir(base)
	if err != nil || len(left) != 1 || left[0].Name() != "yours" {
		t.Errorf("left: %v, %v", left, err)
	}
}

// marked finds the processes that have inherited a variable, with their arguments.
func marked(t *testing.T, mark string) map[string]string {
	t.Helper()
	all := map[string]string{}
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range environs {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(env, []byte(mark)) {
			continue // it has ended, or is somebody else's
		}
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		all[filepath.Base(filepath.Dir(file))] = string(bytes.ReplaceAll(args, []byte{0}, []byte{' '}))
	}
	return all
}

var socketDir = regexp.MustCompile(`--unix-socket-directories=(\S+)`)

func socketDirs(t *testing.T, mark string) (dirs []string) {
	t.Helper()
	for _, args := range marked(t, mark) {
		if found := socketDir.FindStringSubmatch(args); found != nil {
			dirs = append(dirs, found[1])
		}
	}
	return dirs
}

func nothingLeft(t *testing.T, mark string, dirs []string) {
	t.Helper()
	var left map[string]string
	pgtest.Eventually(t, 10*time.Second, "all processes are gone", func() bool {
		left = marked(t, mark)
		return len(left) == 0
	})
	for _, dir := range dirs {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", dir, fmt.Sprint(err))
		}
	}
}
