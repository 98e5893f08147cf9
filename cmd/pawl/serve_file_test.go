package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
)

// write writes a job file whose jobs follow a head.
func write(t *testing.T, name, jobs string) {
	t.Helper()
	text := "version: 1\napp: shop\ndefaults: {owner: a-team, timezone: UTC}\njobs:\n" + jobs
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// answer asks the database for one value, as text.
func answer(t *testing.T, db, sql string, args ...any) (value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := conn.QueryRow(ctx, sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func eventually(t *testing.T, db, want, sql string, args ...any) {
	t.Helper()
	pgtest.Eventually(t, 30*time.Second, sql+" is "+want, func() bool { return answer(t, db, sql, args...) == want })
}

const everySecond = `
  - {name: NAME, kind: command, schedule: "@every 1s", period: tick, command: {argv: [sh, -c, "WORDS"]}}
`

func secondly(name, words string) string {
	return strings.NewReplacer("NAME", name, "WORDS", words).Replace(everySecond)
}

const (
	ranSQL  = `select (count(*) > 0)::text from pawl.periods where job = $1 and parent is null and state = 'complete'`
	saidSQL = `select (count(*) > 0)::text from pawl.runs r join pawl.outputs o on o.run = r.id where r.job = $1 and convert_from(o.head, 'UTF8') like $2`
)

func TestAJobFileIsReadAgainAtAHangupJobByJob(t *testing.T) {
	t.Parallel()
	db, file := pgtest.URL(t), filepath.Join(t.TempDir(), "pawl.yaml")
	write(t, file, secondly("a", "echo first")+secondly("b", "echo first")+secondly("gone", "true"))
	p, url := serveAPI(t, db, "--config", file)
	for _, name := range []string{"a", "b", "gone"} {
		eventually(t, db, "true", ranSQL, name)
	}
	eventually(t, db, "true", saidSQL, "a", "first%")

	write(t, file, secondly("a", "echo second")+strings.Replace(secondly("b", "echo second"), "@every 1s", "every second", 1)+secondly("c", "echo new"))
	p.signal(t, syscall.SIGHUP)
	p.hears(t, 20*time.Second, "job file reloaded")
	eventually(t, db, "true", saidSQL, "a", "second%")
	eventually(t, db, "true", saidSQL, "c", "new%")
	eventually(t, db, "true", `select (retired_at is not null)::text from pawl.schedules where job = 'gone'`)
	before := answer(t, db, `select max(key) from pawl.periods where job = 'b' and state = 'complete'`)
	eventually(t, db, "true", `select (max(key) > $1)::text from pawl.periods where job = 'b' and state = 'complete'`, before)
	if said := answer(t, db, saidSQL, "b", "second%"); said != "false" {
		t.Error("the broken job runs by its new definition")
	}
	place := file + ":8:"
	if rest := p.hears(t, time.Second, `"job file is wrong","issue":"`+place); !strings.Contains(rest, "b.schedule") {
		t.Errorf("the log says %q", rest)
	}
	if status, page, err := fetch(t.Context(), url+"/"); err != nil || status != 200 || !strings.Contains(page, "pawl.yaml:8:") {
		t.Errorf("the page says nothing of it: %d %v", status, err)
	}

	// A file that is none leaves everything as it is; a good one mends the page.
	if err := os.WriteFile(file, []byte("jobs: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGHUP)
	p.hears(t, 20*time.Second, "the new job file can't be used, the old one stays")
	before = answer(t, db, `select max(key) from pawl.periods where job = 'c' and state = 'complete'`)
	eventually(t, db, "true", `select (max(key) > $1)::text from pawl.periods where job = 'c' and state = 'complete'`, before)
	write(t, file, secondly("a", "echo third")+secondly("b", "echo third")+secondly("c", "echo third"))
	p.signal(t, syscall.SIGHUP)
	eventually(t, db, "true", saidSQL, "b", "third%")
	pgtest.Eventually(t, 10*time.Second, "the page has nothing to say of the file", func() bool {
		_, page, err := fetch(t.Context(), url+"/")
		return err == nil && page != "" && !strings.Contains(page, "Job file")
	})
	p.signal(t, syscall.SIGTERM)
	if state := p.ends(t, 20*time.Second); state.ExitCode() != codeOK {
		_, said := p.said()
		t.Errorf("exit code %d: %s", state.ExitCode(), said)
	}
}

func TestAFileThatLacksTooManyJobsIsRefusedUnlessItIsAllowed(t *testing.T) {
	t.Parallel()
	db, file := pgtest.URL(t), filepath.Join(t.TempDir(), "pawl.yaml")
	write(t, file, secondly("a", "true")+secondly("b", "true")+secondly("c", "true")+secondly("d", "true"))
	serve := func(args ...string) (int, string) {
		code, _, said := runPawl(t, append([]string{"serve", "--database-url", db, "--config", file, "--listen", "", "--until-idle"}, args...)...)
		return code, said
	}
	if code, said := serve(); code != codeOK {
		t.Fatalf("exit code %d: %s", code, said)
	}
	write(t, file, secondly("a", "true"))
	if code, said := serve("--log-level", "error"); code != codeUsage || !strings.Contains(said, `3 of 4 known jobs of app "shop" are absent and would be retired`) || !strings.Contains(said, "--allow-retire 3") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if n := answer(t, db, `select count(*)::text from pawl.schedules where app = 'shop' and retired_at is null`); n != "4" {
		t.Errorf("%s jobs are left", n)
	}
	if code, said := serve("--allow-retire", "3"); code != codeOK {
		t.Errorf("exit code %d: %s", code, said)
	}
	if n := answer(t, db, `select count(*)::text from pawl.schedules where app = 'shop' and retired_at is null`); n != "1" {
		t.Errorf("%s jobs are left", n)
	}
}

func TestServeUntilIdleWorksOffWhatIsOwedAndEnds(t *testing.T) {
	t.Parallel()
	db, file := pgtest.URL(t), filepath.Join(t.TempDir(), "pawl.yaml")
	write(t, file, `
  - {name: days, kind: command, schedule: "@daily", start: `+time.Now().UTC().AddDate(0, 0, -3).Format("2006-01-02")+`, period: day, command: {argv: ["true"]}}
`)
	code, _, said := runPawl(t, "serve", "--database-url", db, "--config", file, "--listen", "", "--until-idle")
	if n := answer(t, db, `select count(*)::text from pawl.periods where state = 'complete'`); code != codeOK || n != "4" {
		t.Errorf("exit code %d, %s days are complete, want 4: %s", code, n, said)
	}
}

// hook is a webhook that counts the jobs that it is told of.
func hook(t *testing.T) (url string, told func(job string) bool) {
	t.Helper()
	var mu sync.Mutex
	heard := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e struct{ Job string }
		if json.NewDecoder(r.Body).Decode(&e) == nil {
			mu.Lock()
			defer mu.Unlock()
			heard[e.Job] = true
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, func(job string) bool { mu.Lock(); defer mu.Unlock(); return heard[job] }
}

func TestChannelsAreReadAgainAtAHangupOneByOne(t *testing.T) {
	t.Parallel()
	db, file := pgtest.URL(t), filepath.Join(t.TempDir(), "pawl.yaml")
	one, toldOne := hook(t)
	two, toldTwo := hook(t)
	failing := func(names ...string) (jobs string) {
		for _, name := range names {
			jobs += "\n  - {name: " + name + `, kind: command, schedule: "@every 1s", period: tick, retries: {max: 0}, command: {argv: ["false"]}}`
		}
		return jobs
	}
	channels := func(lines ...string) string {
		text := "\nchannels:\n"
		for _, l := range lines {
			text += "  " + l + "\n"
		}
		return text
	}
	on := func(name, url string) string { return name + ": {webhook: '" + url + "', on: [dead]}" }
	write(t, file, failing("a")+channels(on("ops", one)))
	p, url := serveAPI(t, db, "--config", file)
	pgtest.Eventually(t, 30*time.Second, "ops is told", func() bool { return toldOne("a") })
	if toldTwo("a") {
		t.Error("two was told before there was such a channel")
	}

	// One is added, and one that can't be used keeps its old version.
	write(t, file, failing("a", "b")+channels(on("ops", "ftp://nowhere.example/"), on("night", two)))
	p.signal(t, syscall.SIGHUP)
	p.hears(t, 20*time.Second, `"job file is wrong","issue":"`+file)
	p.hears(t, 20*time.Second, "job file reloaded")
	pgtest.Eventually(t, 30*time.Second, "both are told of b", func() bool { return toldOne("b") && toldTwo("b") })
	if _, page, err := fetch(t.Context(), url+"/"); err != nil || !strings.Contains(page, "channels.ops.webhook") || strings.Contains(page, "nowhere") {
		t.Errorf("the page says nothing of it: %v", err)
	}

	// One is changed, and one is removed.
	write(t, file, failing("c", "b", "a")+channels(on("ops", two)))
	p.signal(t, syscall.SIGHUP)
	eventually(t, db, "true", `select (count(*) > 0)::text from pawl.alerts a join pawl.events e on e.id = a.event where e.job = 'c' and a.channel = 'shop/ops'`)
	pgtest.Eventually(t, 30*time.Second, "ops is told at its new place", func() bool { return toldTwo("c") })
	if toldOne("c") {
		t.Error("the old place is told still")
	}
	if n := answer(t, db, `select count(*)::text from pawl.alerts a join pawl.events e on e.id = a.event where e.job = 'c' and a.channel = 'shop/night'`); n != "0" {
		t.Errorf("%s alerts for a channel that was removed", n)
	}
	pgtest.Eventually(t, 10*time.Second, "the page has nothing to say of the file", func() bool {
		_, page, err := fetch(t.Context(), url+"/")
		return err == nil && page != "" && !strings.Contains(page, "Job file")
	})
	p.signal(t, syscall.SIGTERM)
	p.ends(t, 20*time.Second)
}

func TestTheChannelsOfAFileAreTold(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err == nil {
			bodies <- string(b)
		}
	}))
	t.Cleanup(hook.Close)
	db, file := pgtest.URL(t), filepath.Join(t.TempDir(), "pawl.yaml")
	write(t, file, strings.Replace(secondly("fails", "exit 1"), "kind:", "alerts: [ops], retries: {max: 0}, kind:", 1)+
		"channels: {ops: {webhook: '${env:HOOK}', on: [dead]}}\n")
	start(t, []string{"DATABASE_URL=" + db, "HOOK=" + hook.URL}, "serve", "--config", file, "--listen", "")
	select {
	case body := <-bodies:
		if !strings.Contains(body, `"event":"dead"`) || !strings.Contains(body, `"job":"fails"`) || !strings.Contains(body, `"owner":"a-team"`) {
			t.Errorf("the channel was told %s", body)
		}
	case <-time.After(60 * time.Second):
		t.Error("the channel was told nothing")
	}
}
