package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
	"pawl/migrations"
)

// serving starts a worker whose settlement is under way and can't go on, and returns the addresses of its page and
// of its health, and what lets the settlement go on.
func serving(t *testing.T) (p *process, db, page, health string, release func()) {
	t.Helper()
	db = pgtest.URL(t)
	p = start(t, []string{"DATABASE_URL=" + db}, "serve", "--job", "settlement", "--listen", "127.0.0.1:0",
		"--health-listen", "127.0.0.1:0", "--log-format", "json", "--ttl", "5s")
	p.hears(t, 20*time.Second, "runner started")
	for _, addr := range addresses(p) {
		if status, _, _ := fetch(t.Context(), addr+"/"); status == http.StatusOK {
			page = addr
		} else {
			health = addr
		}
	}
	if page == "" || health == "" {
		t.Fatalf("no page and health among %v", addresses(p))
	}
	pool := pgtest.Open(t, db)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(t.Context()) })
	if _, err := tx.Exec(t.Context(), "lock table pawl_demo.merchant in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	if code, out, said := runPawl(t, "job", "trigger", "settlement", "--database-url", db); code != codeOK {
		t.Fatalf("trigger: exit code %d, %s%s", code, out, said)
	}
	pgtest.Eventually(t, 20*time.Second, "the run is under way", func() bool {
		return one[bool](t, db, `select exists (select from pawl.runs where state = 'running')`)
	})
	return p, db, page, health, func() {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// addresses are those that the log says are served.
func addresses(p *process) (all []string) {
	_, log := p.said()
	for line := range strings.Lines(log) {
		var entry struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "web: serving" {
			all = append(all, "http://"+entry.Address)
		}
	}
	return all
}

// one asks for one value.
func one[T any](t *testing.T, db, sql string) (v T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func draining(t *testing.T, health string) {
	t.Helper()
	pgtest.Eventually(t, 10*time.Second, "it says that it drains", func() bool {
		status, body, err := fetch(t.Context(), health+"/readyz")
		return err == nil && status == http.StatusServiceUnavailable && strings.Contains(body, "draining")
	})
}

func TestServeDrainsOnTheFirstSignal(t *testing.T) {
	t.Parallel()
	p, db, page, health, release := serving(t)
	for url, want := range map[string]string{
		page + "/": "job:settlement", page + "/api/overview": `"holders":[{"lock":"job:settlement"`, health + "/healthz": "ok",
		health + "/readyz": "ok", page + "/metrics": "pawl_leases",
	} {
		pgtest.Eventually(t, 10*time.Second, url+" says "+want, func() bool {
			status, body, err := fetch(t.Context(), url)
			return err == nil && status == http.StatusOK && strings.Contains(body, want)
		})
	}
	p.signal(t, syscall.SIGTERM)
	draining(t, health)
	release()
	state := p.ends(t, 20*time.Second)
	if _, said := p.said(); !state.Success() || !strings.HasSuffix(said, `"msg":"stopped"}`+"\n") {
		t.Errorf("%v: %s", state, said)
	}
	if state := one[string](t, db, `select string_agg(state, ',') from pawl.runs`); state != "complete" {
		t.Errorf("the run is %s", state)
	}
}

func TestServeEndsAtOnceOnTheSecondSignal(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p, _, _, health, _ := serving(t)
			p.signal(t, sig)
			draining(t, health)
			p.signal(t, sig)
			state := p.ends(t, 3*time.Second)
			if status, ok := state.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != sig {
				t.Errorf("it ended with %v, not by the signal", state)
			}
		})
	}
}

// Without --job it runs nothing, and does for the others what needs no function: here it ends a run whose worker died.
func TestServeWithoutAJobPlansAndSweeps(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	const dead = `
insert into pawl.schedules (job, app, definition, lock, watermark, next_at)
values ('report', 'default', '{"schedule": "@every 1s", "runs": 6}', 'job:report', now(), now());
insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, attempts, token, run)
values ('report', 'k', 'job:report', 'running', now(), now(), now() - interval '1 h', 1, 7, '00000000-0000-4000-8000-000000000001');
insert into pawl.runs (id, job, key, revision, attempt, lock, token, state) values ('00000000-0000-4000-8000-000000000001', 'report', 'k', 1, 1, 'job:report', 7, 'running');
insert into pawl.lanes (lock) values ('job:report');
insert into pawl.locks (name, token, incarnation, grant_id, ttl, acquired_at, renewed_at, expires_at)
values ('job:report', 7, 1, '00000000-0000-4000-8000-000000000001', '1 s', now(), now(), now())`
	if _, err := pgtest.Open(t, db).Exec(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	p := start(t, []string{"DATABASE_URL=" + db}, "serve", "--listen", "127.0.0.1:0", "--log-format", "json")
	p.hears(t, 20*time.Second, "no jobs: this process serves the page, plans and sweeps")
	p.hears(t, 20*time.Second, "runner started")
	pgtest.Eventually(t, 20*time.Second, "the dead run is ended and ticks are planned", func() bool {
		return one[bool](t, db, `select (select state from pawl.runs) = 'lost' and (select count(*) from pawl.periods) > 2`)
	})
	if !one[bool](t, db, `select (select count(*) from pawl.runs) = 1 and to_regnamespace('pawl_demo') is null`) {
		t.Error("it has run something, or made the example's schema")
	}
	page := addresses(p)[0]
	if status, body, err := fetch(t.Context(), page+"/readyz"); err != nil || status != http.StatusOK {
		t.Errorf("ready: %d %q %v", status, body, err)
	}
	p.signal(t, syscall.SIGINT)
	if state := p.ends(t, 20*time.Second); !state.Success() {
		t.Errorf("%v", state)
	}
}

// A login with no more than pawl_worker runs jobs; what the example needs beside that is said, and works as it is said.
func TestTheExampleSaysWhichSchemaAWorkerNeeds(t *testing.T) {
	t.Parallel()
	db := pgtest.Empty(t)
	owner := pgtest.Open(t, db)
	var ddl strings.Builder
	if err := migrations.SQL(&ddl); err != nil {
		t.Fatal(err)
	}
	name := "clerk-" + rand.Text()[:8]
	quoted := pgx.Identifier{name}.Sanitize()
	for _, sql := range []string{ddl.String(), "create role " + quoted + " login in role pawl_worker"} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := owner.Exec(context.WithoutCancel(t.Context()), "drop owned by "+quoted+"; drop role "+quoted); err != nil {
			t.Error(err)
		}
	})
	worker := withQuery(t, db, func(q url.Values) { q.Set("user", name) })
	if code, out, said := runPawl(t, "doctor", "--database-url", worker); code != codeOK || !strings.Contains(out, name+" may run jobs") {
		t.Errorf("doctor: exit code %d, %s%s", code, out, said)
	}
	code, _, said := runPawl(t, "serve", "--job", "settlement", "--listen", "", "--database-url", worker)
	_, fix, found := strings.Cut(said, "for the first start have the database's owner run: ")
	if code != codeUsage || !found || !strings.Contains(said, "in the schema pawl_demo, which") || strings.Contains(said, "migrate sql") {
		t.Fatalf("exit code %d, %s", code, said)
	}
	if _, err := owner.Exec(t.Context(), fix); err != nil {
		t.Fatal(err)
	}
	p := start(t, []string{"DATABASE_URL=" + worker}, "serve", "--job", "settlement", "--listen", "", "--log-format", "json")
	p.hears(t, 20*time.Second, "runner started")
	p.signal(t, syscall.SIGINT)
	if state := p.ends(t, 20*time.Second); !state.Success() {
		t.Errorf("%v", state)
	}
	// Only the first start needs it.
	if _, err := owner.Exec(t.Context(), strings.NewReplacer("grant ", "revoke ", " to ", " from ").Replace(fix)); err != nil {
		t.Fatal(err)
	}
	p = start(t, []string{"DATABASE_URL=" + worker}, "serve", "--job", "settlement", "--listen", "", "--log-format", "json")
	p.hears(t, 20*time.Second, "runner started")
}

func TestAnAddressInUseIsOneSentenceWithTheFix(t *testing.T) {
	t.Parallel()
	taken := answering(t, func(conn net.Conn) { _ = conn.Close() })
	db := pgtest.URL(t)
	for flag, fix := range map[string]string{
		"--listen": `name another address with --listen ADDRESS, or --listen "" for no page`, "--health-listen": "name another address with --health-listen ADDRESS",
	} {
		args := []string{"serve", "--listen", "", "--database-url", db, flag, taken}
		code, out, said := runPawl(t, append(args, "--log-level", "error")...)
		want := "pawl: " + flag + ` is "` + taken + `": another process listens there; ` + fix + "\n"
		if code != codeUsage || out != "" || said != want {
			t.Errorf("exit code %d, %q, want %q", code, said, want)
		}
	}
}

func TestServeSaysThatItPollsBehindAPooler(t *testing.T) {
	t.Parallel()
	db := pgtest.Pooler(t, pgtest.URL(t))
	p := start(t, []string{"DATABASE_URL=" + db}, "serve", "--job", "settlement", "--listen", "127.0.0.1:0", "--log-format", "text")
	p.hears(t, 20*time.Second, "behind a pooler: polling")
	p.hears(t, 20*time.Second, "runner started")
	p.signal(t, syscall.SIGINT)
	if state := p.ends(t, 20*time.Second); !state.Success() {
		t.Errorf("%v", state)
	}
}
