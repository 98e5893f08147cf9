package web_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/faults"
	"pawl/internal/pgdev"
	"pawl/internal/pgtest"
)

// failing sends the request to a server whose database is in the state that the case names.
func (c *httpCase) failing(t *testing.T) {
	t.Helper()
	prepare := map[string]func(*testing.T) *lockAPI{
		"postgres stopped":                 stopped,
		"default_transaction_read_only=on": readOnly,
		"proxy drops replies":              muted,
		"all connections held":             exhausted,
	}[c.Precondition]
	if prepare == nil {
		t.Fatalf("no harness for %q", c.Precondition)
	}
	a := prepare(t)
	got := c.send(t, a, 0)
	c.judge(t, a, got)
	got.is(t, http.StatusServiceUnavailable, "unavailable")
	if wait, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || wait < 1 {
		t.Errorf("Retry-After = %q", got.header.Get("Retry-After"))
	}
	got.lacks(t, "acquired\":")
	a.log.has(t, "level=WARN", "slug=unavailable", "request_id="+got.header.Get("X-Request-Id"))
}

func (l *logged) has(t *testing.T, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if !strings.Contains(l.String(), s) {
			t.Errorf("the log lacks %q: %s", s, l.String())
		}
	}
}

// stopped is an API whose database was there and is gone.
func stopped(t *testing.T) *lockAPI {
	t.Helper()
	server := pgtest.Own(t)
	a := apiOn(t, pgtest.Open(t, server.URL()), nil)
	if a.take(t, "before", alice) == 0 {
		t.Fatal("the lock is not free")
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	return a
}

// readOnly is an API on a database that is frozen: whoever froze it means us too.
func readOnly(t *testing.T) *lockAPI {
	t.Helper()
	pool := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), `do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$`); err != nil {
		t.Fatal(err)
	}
	pool.Reset()
	return apiOn(t, pool, nil)
}

// mute is an API whose database hears it and isn't heard: what became of a COMMIT is not known.
func mute(t *testing.T) (*lockAPI, *faults.Proxy) {
	t.Helper()
	server := pgtest.Own(t)
	proxy, pool := through(t, server)
	a := apiOn(t, pool, nil)
	for i := range 4 { // connections that are there when the replies stop
		a.take(t, "warm-"+strconv.Itoa(i), alice)
	}
	proxy.Set(faults.Swallow, 0)
	return a, proxy
}

func muted(t *testing.T) *lockAPI {
	t.Helper()
	a, _ := mute(t)
	return a
}

// through is a pool that reaches the server by a proxy.
func through(t *testing.T, server *pgdev.Server) (*faults.Proxy, *pgxpool.Pool) {
	t.Helper()
	proxy, err := faults.NewProxy(filepath.Join(server.SocketDir(), ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(proxy.Addr(), ":")
	q := u.Query()
	q.Set("host", host)
	q.Set("port", port)
	u.RawQuery = q.Encode()
	return proxy, pgtest.Open(t, u.String())
}

// exhausted is an API whose pool has no connection left.
func exhausted(t *testing.T) *lockAPI {
	t.Helper()
	pool := pgtest.New(t)
	a := apiOn(t, pool, nil)
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Release)
	}
	return a
}
