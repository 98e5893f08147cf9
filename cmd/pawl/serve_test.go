package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
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
	if state := p.ends(t, 20*time.Second); !state.Success() {
		_, said := p.said()
		t.Errorf("%v: %s", state, said)
	}
	if state := one[string](t, db, `select string_agg(state, ',') from pawl.runs`); state != "complete" {
		t.Errorf("the run is %s", state)
	}
}

func TestServeEndsAtOnceOnTheSecondSignal(t *testing.T) {
	t.Parallel()
	p, _, _, health, _ := serving(t)
	p.signal(t, syscall.SIGTERM)
	draining(t, health)
	p.signal(t, syscall.SIGTERM)
	state := p.ends(t, 3*time.Second)
	if status, ok := state.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v, not by the signal", state)
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
