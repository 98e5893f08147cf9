package fence_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/internal/pgtest"
)

func TestOneStatementIsWrittenUnderALiveToken(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	tok := acquire(t, pool, "l", "a", time.Minute)
	tag, err := fence.Exec(t.Context(), pool, tok, `insert into public.ledger values ($1, $2)`, 1, tok.Seq)
	if err == nil && tag.RowsAffected() != 1 {
		t.Errorf("Exec wrote %d rows", tag.RowsAffected())
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := rows(); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestOneStatementUnderAStaleTokenIsRefusedAndRecorded(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	old := acquire(t, pool, "l", "a", time.Minute)
	takeOver(t, pool, old)
	_, err := fence.Exec(t.Context(), pool, old, `insert into public.ledger values (1, 1)`)
	if !errors.Is(err, fence.ErrStale) || !errors.Is(err, fence.ErrNotHeld) {
		t.Errorf("Exec = %v, want ErrStale", err)
	}
	if n := rows(); n != 0 {
		t.Errorf("%d rows were written", n)
	}
	if n := one[int](t, pool, `select count(*) from pawl.refusals where lock = 'l' and token = $1`, old.Seq); n != 1 {
		t.Errorf("%d refusals are recorded, want 1", n)
	}
}

func TestOneStatementWhoseCommitHasNoAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	exec(t, pool, `create function die() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$`)
	exec(t, pool, `create constraint trigger die after insert on ledger deferrable initially deferred for each row execute function die()`)
	tok := acquire(t, pool, "l", "a", time.Minute)
	_, err := fence.Exec(t.Context(), pool, tok, `insert into ledger values (1, 1)`)
	wantErr(t, err, fence.ErrUnknown)
	if n := rows(); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestAFailingStatementLeavesASingleConnectionUsable(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	tok := acquire(t, pool, "l", "a", time.Minute)
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	if _, err := fence.Exec(t.Context(), conn, tok, `select 1/0`); err == nil || errors.Is(err, fence.ErrUnknown) {
		t.Errorf("Exec of a division by zero = %v, want a definite error", err)
	}
	if _, err := fence.Exec(t.Context(), conn, tok, `select $1::int`, "no number"); err == nil || errors.Is(err, fence.ErrUnknown) {
		t.Errorf("Exec with a parameter that doesn't fit = %v, want a definite error", err)
	}
	if _, err := fence.Exec(t.Context(), conn, tok, `select 1`); err != nil {
		t.Errorf("the connection is not usable after an error: %v", err)
	}
}

func TestOneStatementIsReadCommittedWhateverTheDefault(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	rows := ledger(t, pool)
	tok := acquire(t, pool, "l", "a", time.Minute)
	cfg := pool.Config().ConnConfig.Copy()
	cfg.RuntimeParams["default_transaction_isolation"] = "repeatable read"
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	const sql = `insert into public.ledger select 1, $1 where current_setting('transaction_isolation') = 'read committed'`
	if _, err := fence.Exec(t.Context(), conn, tok, sql, tok.Seq); err != nil || rows() != 1 {
		t.Errorf("Exec = %v, %d rows were written, want 1", err, rows())
	}
	takeOver(t, pool, tok)
	if _, err := fence.Exec(t.Context(), conn, tok, sql, tok.Seq); !errors.Is(err, fence.ErrStale) {
		t.Errorf("Exec with a stale token = %v", err)
	}
	if rows() != 1 || conn.PgConn().TxStatus() != 'I' {
		t.Errorf("%d rows, transaction status %c", rows(), conn.PgConn().TxStatus())
	}
}

func TestOneStatementsSettingsAreItsOwn(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	tok := acquire(t, pool, "l", "a", time.Minute)
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	exec(t, pool, `create table said (app text, lease text, checks text)`)
	const settings = `select current_setting('application_name'), current_setting('pawl.lease', true), current_setting('client_connection_check_interval')`
	var app, lease, checks string
	if _, err := fence.Exec(t.Context(), conn, tok, `insert into said `+settings); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), `select app, lease, checks from said`).Scan(&app, &lease, &checks); err != nil {
		t.Fatal(err)
	}
	if app != fmt.Sprint("pawl ", tok.Seq) || lease != fmt.Sprintf(`{"l" : %d}`, tok.Seq) || checks == "0" {
		t.Errorf("inside: %q, %q, %q", app, lease, checks)
	}
	if err := conn.QueryRow(t.Context(), settings).Scan(&app, &lease, &checks); err != nil {
		t.Fatal(err)
	}
	if app == fmt.Sprint("pawl ", tok.Seq) || lease != "" || checks != "0" {
		t.Errorf("afterwards: %q, %q, %q", app, lease, checks)
	}
}
