package fence_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pawl/fence"
	"pawl/internal/pgtest"
)

func asStale(t testing.TB, err error) *fence.StaleError {
	t.Helper()
	var stale *fence.StaleError
	if !errors.As(err, &stale) {
		t.Fatalf("%v is no *StaleError", err)
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		t.Errorf("%v hides what Postgres said", err)
	}
	return stale
}

func TestALiveTokenPasses(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	for range 3 {
		if err := fence.Do(t.Context(), pool, tok, write(t.Context(), tok)); err != nil {
			t.Fatal(err)
		}
	}
	if n := rows(); n != 3 {
		t.Errorf("%d rows", n)
	}
}

func TestAStaleTokenIsRefusedAndRecorded(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	b := takeOver(t, pool, a)
	err := fence.Do(t.Context(), pool, a, func(pgx.Tx) error { t.Error("fn was called"); return nil })
	wantErr(t, err, fence.ErrStale, fence.ErrNotHeld)
	stale := asStale(t, err)
	if stale.Token != a || stale.Current != b.Seq || stale.Holder != "b" || stale.Code != fence.CodeStale || stale.Target != "" {
		t.Errorf("%+v", stale)
	}
	want := "fence: lease " + a.String() + " has ended, token " + fence.FormatSeq(b.Seq) + " is current and held by b; stop writing and acquire the lock again"
	if err.Error() != want {
		t.Errorf("message %q, want %q", err, want)
	}
	const record = `select lock = $1 and token = $2 and current = $3 and holder = 'a' and statement = 'begin' and target is null
		and late_by between '1 s' and '1 min' from pawl.refusals`
	if !one[bool](t, pool, record, a.Lock, a.Seq, b.Seq) {
		t.Error("the record is wrong")
	}
	if err := fence.Do(t.Context(), pool, b, write(t.Context(), b)); err != nil || rows() != 1 {
		t.Errorf("the successor: %v, %d rows", err, rows())
	}
}

func TestAnExpiredLeaseIsNotHeldThoughNobodyTookIt(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	expire(t, pool, tok)
	err := fence.DoWith(t.Context(), pool, tok, fence.Options{Statement: "settle day 4"}, nil)
	wantErr(t, err, fence.ErrNotHeld)
	if s := asStale(t, err); s.Code != fence.CodeNotHeld || s.Current != tok.Seq {
		t.Errorf("%+v", s)
	}
	const record = `select current = token and holder = 'a' and statement = 'settle day 4' and late_by >= '1 s' from pawl.refusals`
	if !one[bool](t, pool, record) {
		t.Error("the record is wrong")
	}
	wantErr(t, fence.Do(t.Context(), pool, fence.Token{Lock: "never", Seq: 5}, nil), fence.ErrNotHeld)
}

func TestALeaseForcedAwayDuringTheTransactionStopsItsCommit(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	err := fence.Do(t.Context(), pool, tok, func(tx pgx.Tx) error {
		exec(t, pool, `update pawl.locks set grant_id = null, holder = null, expires_at = null`)
		return write(t.Context(), tok)(tx)
	})
	wantErr(t, err, fence.ErrNotHeld)
	if n := rows(); n != 0 {
		t.Errorf("%d rows", n)
	}
	if s := one[string](t, pool, `select statement from pawl.refusals`); s != "commit" {
		t.Errorf("recorded as %q", s)
	}
}

func TestAnErrorOfTheFunctionRollsBackAndComesBack(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	mine := errors.New("mine")
	err := fence.Do(t.Context(), pool, tok, func(tx pgx.Tx) error {
		return errors.Join(write(t.Context(), tok)(tx), mine)
	})
	if !errors.Is(err, mine) {
		t.Errorf("err %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = fence.Do(t.Context(), pool, tok, func(tx pgx.Tx) error {
			exec(t, tx, `insert into ledger values (1, 1)`)
			panic("fn")
		})
	}()
	cause := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	err = fence.Do(ctx, pool, tok, func(tx pgx.Tx) error {
		defer cancel(cause)
		return write(t.Context(), tok)(tx)
	})
	if !errors.Is(err, cause) {
		t.Errorf("an ended context: %v", err)
	}
	err = fence.Do(t.Context(), pool, tok, func(tx pgx.Tx) error {
		_, _ = tx.Exec(t.Context(), `select 1/0`) // swallowed
		return nil
	})
	if !errors.Is(err, pgx.ErrTxCommitRollback) {
		t.Errorf("an aborted transaction: %v", err)
	}
	if n, r := rows(), one[int](t, pool, `select count(*) from pawl.refusals`); n != 0 || r != 0 {
		t.Errorf("%d rows, %d refusals", n, r)
	}
	if n := pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections not given back", n)
	}
}

func TestARefusedBeginLeavesAConnectionUsable(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	b := takeOver(t, pool, a)
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	wantErr(t, fence.Do(t.Context(), conn, a, nil), fence.ErrStale, fence.ErrNotHeld)
	if err := fence.Claim(t.Context(), conn, b, "x"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if n := one[int](t, conn, `select count(*) from pawl.refusals`); n != 1 {
		t.Errorf("%d refusals", n)
	}
}

func TestACommitThatEndsWithoutAnAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	exec(t, pool, `create function die() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$`)
	exec(t, pool, `create constraint trigger die after insert on ledger deferrable initially deferred for each row execute function die()`)
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	wantErr(t, fence.Do(t.Context(), pool, tok, write(t.Context(), tok)), fence.ErrUnknown)
	if n := rows(); n != 0 {
		t.Errorf("%d rows", n)
	}
	if n := one[int](t, pool, `select count(*) from pawl.refusals`); n != 0 {
		t.Errorf("%d refusals: an unknown outcome is none", n)
	}
}

// deaf is a connection that hears nothing more once COMMIT has been carried out.
type deaf struct {
	net.Conn
	committing bool
}

func (d *deaf) Write(p []byte) (int, error) {
	d.committing = d.committing || bytes.Contains(p, []byte("guard_again"))
	return d.Conn.Write(p)
}

func (d *deaf) Read(p []byte) (int, error) {
	n, err := d.Conn.Read(p)
	if err == nil && d.committing { // it has answered, so it has committed
		_ = d.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func TestAnUnknownCommitMayHaveHappened(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	config := pool.Config().ConnConfig
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return &deaf{Conn: c}, err
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	wantErr(t, fence.Do(t.Context(), conn, tok, write(t.Context(), tok)), fence.ErrUnknown)
	if n := one[int](t, pool, `select count(*) from (select from ledger where token = $1 for update) x`, tok.Seq); n != 1 || rows() != 1 {
		t.Errorf("asked with FOR UPDATE: %d rows", n)
	}
}

func TestOnlyALostReplyIsUnknown(t *testing.T) {
	t.Parallel()
	pg := func(severity, code string) error {
		return &pgconn.PgError{Severity: severity, SeverityUnlocalized: severity, Code: code}
	}
	for _, c := range []struct {
		what    string
		err     error
		unknown bool
	}{
		{"the server was stopped", pg("FATAL", "57P01"), true},
		{"the server crashed", pg("FATAL", "57P02"), true},
		{"a pooler lost the server", pg("ERROR", "08P01"), true},
		{"connection failure", pg("FATAL", "08006"), true},
		{"the connection was cut", io.ErrUnexpectedEOF, true},
		{"COMMIT took too long", context.DeadlineExceeded, true},
		{"panic", pg("PANIC", "XX000"), true},
		{"the idle limit ended it before COMMIT", pg("FATAL", "25P03"), false},
		{"statement_timeout in a deferred trigger", pg("ERROR", "57014"), false},
		{"a deferred constraint", pg("ERROR", "23505"), false},
		{"a conflict", pg("ERROR", "40001"), false},
		{"fn ended it", pgx.ErrTxClosed, false},
	} {
		err := fence.WrapCommit(c.err, fence.Token{Lock: "x", Seq: 1})
		if errors.Is(err, fence.ErrUnknown) != c.unknown {
			t.Errorf("%s: %v, unknown should be %v", c.what, err, c.unknown)
		}
		if !errors.Is(err, c.err) || !strings.HasPrefix(err.Error(), "fence: ") {
			t.Errorf("%s: %v hides its cause", c.what, err)
		}
	}
	if err := fence.WrapCommit(nil, fence.Token{}); err != nil {
		t.Error(err)
	}
}
