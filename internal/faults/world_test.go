package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/faults"
	"pawl/internal/pgdev"
	"pawl/internal/pgtest"
	"pawl/migrations"
)

// world is a server of its own with a standby, and three workers that each reach it through a proxy.
type world struct {
	t       *testing.T
	ledger  faults.Ledger
	workers []*member
	stream  *faults.Proxy   // from the standby to the primary
	freeze  sync.Mutex      // one stopped worker at a time: a successor must be left
	old     []*pgdev.Server // primaries that are gone

	mu               sync.Mutex
	primary, standby *pgdev.Server
	pool             *pgxpool.Pool
	seen             faults.Seen
}

// member is a worker and its way to the server.
type member struct {
	*faults.Process
	proxy   *faults.Proxy
	stopped time.Time // when it was stopped last
}

const workers = 3

func newWorld(t *testing.T, periods int, pause time.Duration) *world {
	t.Helper()
	w := &world{t: t, ledger: faults.Ledger{Jobs: 4, Periods: periods}}
	server, err := pgdev.Start(t.Context(), pgdev.Options{Settings: map[string]string{
		"track_commit_timestamp": "on", "synchronous_commit": "on", "wal_receiver_timeout": "2s", "wal_retrieve_retry_interval": "100ms",
	}})
	w.must(err)
	w.primary = server
	t.Cleanup(func() { w.bury(); w.stop(w.primary); w.stop(w.standby) })
	w.pool = pgtest.Open(t, server.URL())
	_, err = migrations.Up(t.Context(), w.pool)
	w.must(err)
	w.must(w.ledger.Create(t.Context(), w.pool, pause))
	w.stream = w.proxy()
	w.follow()
	for range workers {
		m := &member{proxy: w.proxy()}
		m.Process = faults.Spawn(t, "ledger", "postgres://postgres@"+m.proxy.Addr()+"/postgres?sslmode=disable&connect_timeout=5")
		w.workers = append(w.workers, m)
	}
	w.await("every lock has a batch", func(p *pgxpool.Pool) bool {
		return w.number(p, `select count(distinct lock) from witness`) == w.ledger.Jobs
	})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stop(s *pgdev.Server) {
	if s != nil {
		if err := s.Stop(); err != nil {
			w.t.Error(err)
		}
	}
}

// bury removes what is left of old primaries.
func (w *world) bury() {
	for _, s := range w.old {
		w.stop(s)
	}
	w.old = nil
}

func socket(s *pgdev.Server) string { return filepath.Join(s.SocketDir(), ".s.PGSQL.5432") }

func (w *world) proxy() *faults.Proxy {
	w.t.Helper()
	p, err := faults.NewProxy(socket(w.primary))
	w.must(err)
	w.t.Cleanup(p.Close)
	return p
}

// follow gives the primary a standby, which streams through a proxy.
func (w *world) follow() {
	w.t.Helper()
	w.bury()
	standby, err := w.primary.Standby(w.t.Context())
	w.must(err)
	w.mu.Lock()
	w.standby = standby
	w.mu.Unlock()
	host, port, _ := strings.Cut(w.stream.Addr(), ":")
	w.must(execOn(w.t.Context(), standby.URL(), fmt.Sprintf("alter system set primary_conninfo = 'host=%s port=%s user=postgres sslmode=disable'", host, port)))
	w.must(execOn(w.t.Context(), standby.URL(), "select pg_reload_conf()"))
	w.await("the standby streams through the proxy", func(*pgxpool.Pool) bool {
		var n int
		err := query(w.t.Context(), standby.URL(), &n, `select count(*) from pg_stat_wal_receiver where status = 'streaming' and conninfo like $1`, "%port="+port+"%")
		return err == nil && n == 1
	})
}

func (w *world) db() (*pgdev.Server, *pgxpool.Pool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.primary, w.pool
}

// await polls until fact is true, over all that may be wrong with the database meanwhile.
func (w *world) await(what string, fact func(*pgxpool.Pool) bool) {
	w.t.Helper()
	late := time.Now().Add(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		_, pool := w.db()
		if fact(pool) {
			return
		}
		if time.Now().After(late) {
			w.t.Fatalf("still not true after a minute: %s", what)
		}
		<-tick.C
	}
}

// number is what a query counts, or -1 without an answer.
func (w *world) number(pool *pgxpool.Pool, sql string, args ...any) (n int) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Second)
	defer cancel()
	if pool.QueryRow(ctx, sql, args...).Scan(&n) != nil {
		return -1
	}
	return n
}

// holds is a lock and the number of the worker that has it, or -1.
type holds struct {
	lock   string
	worker int
}

// holders says who has which lock now.
func (w *world) holders() (hs []holds) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Second)
	defer cancel()
	_, pool := w.db()
	rows, err := pool.Query(ctx, `select name, split_part(holder, '/', 2) from pawl.locks where expires_at > clock_timestamp() order by name`)
	if err != nil {
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var lock, pid string
		if rows.Scan(&lock, &pid) != nil {
			return nil
		}
		for i, m := range w.workers {
			if pid == strconv.Itoa(m.Pid()) {
				hs = append(hs, holds{lock, i})
			}
		}
	}
	return hs
}

// pids are the processes of a server, the postmaster first.
func pids(s *pgdev.Server) []int {
	parent := s.Pid()
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", parent)) // none: it has just ended
	all := []int{parent}
	for f := range strings.FieldsSeq(string(b)) {
		if pid, err := strconv.Atoi(f); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

func signalAll(pids []int, s syscall.Signal) (err error) {
	for _, pid := range pids {
		if e := syscall.Kill(pid, s); e != nil && !errors.Is(e, syscall.ESRCH) {
			err = e
		}
	}
	return err
}

// execOn runs a statement on a connection of its own that may write whatever the default is.
func execOn(ctx context.Context, dsn, sql string) error { return query(ctx, dsn, nil, sql) }

func query(ctx context.Context, dsn string, n *int, sql string, args ...any) error {
	u, err := url.Parse(dsn)
	if err != nil {
		return err
	}
	q := u.Query()
	q.Set("default_transaction_read_only", "off")
	q.Set("connect_timeout", "2")
	u.RawQuery = q.Encode()
	conn, err := connect(ctx, u.String())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is given up
	if n == nil {
		_, err = conn.Exec(ctx, sql, args...)
		return err
	}
	return conn.QueryRow(ctx, sql, args...).Scan(n)
}
