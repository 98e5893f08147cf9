package faults_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/faults"
	"pawl/internal/pgtest"
)

type pool = pgxpool.Pool

func connect(ctx context.Context, dsn string) (*pgx.Conn, error) { return pgx.Connect(ctx, dsn) }

// pause is real time: worker processes and a server have no other.
func pause(d time.Duration) { <-time.After(d) }

func through(m *member, mode faults.Mode, d time.Duration) error {
	m.proxy.Set(mode, ttl*3/2)
	pause(d)
	m.proxy.Set(faults.Pass, 0)
	return nil
}

func replyLost(_ *world, f fault, m *member) error { return through(m, faults.Swallow, f.lasts) }
func replyLate(_ *world, f fault, m *member) error { return through(m, faults.Late, f.lasts) }
func blackHole(_ *world, f fault, m *member) error { return through(m, faults.Hole, f.lasts) }

func wrongClock(w *world, f fault, m *member) error {
	there, back := syscall.SIGUSR1, syscall.SIGUSR2
	if f.n%2 == 1 {
		there, back = back, there
	}
	m.Signal(w.t, there)
	pause(f.lasts)
	m.Signal(w.t, back)
	return nil
}

var errMissed = errors.New("missed its aim")

// leftSQL keeps a renewal off, but no guard, and says for how long the lease lasts and what its token is.
const leftSQL = `select extract(epoch from expires_at - clock_timestamp())::float8, token from pawl.locks where name = $1 and grant_id is not null for no key update`

// holderStopped holds up the renewals of one lease, stops its holder 50 ms before the end, and lets it go on just after
// a successor has written.
func holderStopped(w *world, f fault, m *member) error {
	w.freeze.Lock()
	defer w.freeze.Unlock()
	lock := ""
	for _, h := range w.holders() {
		if w.workers[h.worker] == m {
			lock = h.lock
		}
	}
	if lock == "" {
		return errMissed
	}
	server, pool := w.db()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	conn, err := connect(ctx, server.URL())
	if err != nil {
		return errMissed
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is given up
	tx, err := conn.Begin(ctx)
	if err != nil {
		return errMissed
	}
	var left float64
	var token int64
	if tx.QueryRow(ctx, leftSQL, lock).Scan(&left, &token) != nil {
		return errMissed
	}
	pause(time.Duration(left*float64(time.Second)) - 50*time.Millisecond)
	m.stopped = time.Now()
	m.Signal(w.t, syscall.SIGSTOP)
	defer m.Signal(w.t, syscall.SIGCONT)
	if tx.Rollback(ctx) != nil {
		return errMissed
	}
	for range 500 { // 5 s
		if w.number(pool, `select count(*) from witness where lock = $1 and token > $2`, lock, token) > 0 {
			pause(f.lasts)
			return nil
		}
		pause(10 * time.Millisecond)
	}
	return fmt.Errorf("%w: no successor", errMissed)
}

func databasePaused(w *world, f fault, _ *member) error {
	server, _ := w.db()
	if err := signalAll([]int{server.Pid()}, syscall.SIGSTOP); err != nil { // first: from now on it has no more children
		return err
	}
	if err := signalAll(pids(server), syscall.SIGSTOP); err != nil {
		return err
	}
	pause(f.lasts)
	return signalAll(pids(server), syscall.SIGCONT)
}

func databaseRestarted(w *world, f fault, _ *member) error {
	server, pool := w.db()
	if f.n%2 == 0 {
		return server.Restart(w.t.Context())
	}
	var pid int
	if err := pool.QueryRow(w.t.Context(), `select pg_backend_pid()`).Scan(&pid); err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil { // the postmaster ends them all and recovers
		return err
	}
	w.answers()
	return nil
}

// answers waits until the server does.
func (w *world) answers() {
	for range 3000 { // half a minute
		server, _ := w.db()
		var n int
		if query(w.t.Context(), server.URL(), &n, `select 1`) == nil {
			return
		}
		pause(10 * time.Millisecond)
	}
	w.t.Error("the server doesn't come back")
}

func databaseReadOnly(w *world, f fault, _ *member) error {
	server, _ := w.db()
	set := func(sql string) error {
		return errors.Join(execOn(w.t.Context(), server.URL(), sql), execOn(w.t.Context(), server.URL(), `select pg_reload_conf()`))
	}
	if err := set(`alter system set default_transaction_read_only = on`); err != nil {
		return err
	}
	pause(f.lasts)
	return set(`alter system reset default_transaction_read_only`)
}

// databaseFailedOver loses what was committed in the last moments: the standby was cut off then.
func databaseFailedOver(w *world, f fault, _ *member) error {
	old, _ := w.db()
	w.stream.Set(faults.Hole, 0)
	pause(f.lasts)
	if err := old.StopImmediate(); err != nil {
		return err
	}
	if err := w.standby.Promote(w.t.Context()); err != nil {
		return err
	}
	pool := pgtest.Open(w.t, w.standby.URL())
	w.mu.Lock()
	w.primary, w.standby, w.pool = w.standby, nil, pool
	w.mu.Unlock()
	for _, m := range w.workers {
		m.proxy.Redirect(socket(w.primary))
	}
	w.stream.Redirect(socket(w.primary))
	w.stream.Set(faults.Pass, 0)
	w.old = append(w.old, old)
	return nil
}
