package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

const (
	invoicesFile = "../../examples/invoices/pawl.yaml"
	settledSQL   = `select count(*) || ' days, ' || sum(total) from settled`
	settledAll   = "354 days, 2328.60"
)

// store is a new database with a store's invoices.
func store(t *testing.T) (db string) {
	t.Helper()
	schema, err := os.ReadFile("../../examples/invoices/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	db = pgtest.URL(t)
	pool := pgtest.Open(t, db)
	pgtest.Invoices(t, pool)
	if _, err := pool.Exec(t.Context(), string(schema)); err != nil {
		t.Fatal(err)
	}
	return db
}

func backfillInvoices(t *testing.T, db string, more ...string) (code int, said string) {
	t.Helper()
	args := []string{"backfill", "settle", "--database-url", db, "--config", invoicesFile, "--from", "2021-01-01", "--to", "2025-12-31", "--yes", "--log-level", "error"}
	code, _, said = runPawl(t, append(args, more...)...)
	return code, said
}

func serveInvoices(t *testing.T, db string) *process {
	t.Helper()
	return start(t, []string{"DATABASE_URL=" + db}, "serve", "--config", invoicesFile, "--listen", "", "--log-level", "warn")
}

func TestABackfillSettlesAStoresInvoicesOnce(t *testing.T) {
	t.Parallel()
	db := store(t)
	serveInvoices(t, db)
	if code, said := backfillInvoices(t, db, "--wait"); code != codeOK || !strings.Contains(said, "all 1,826 periods are complete") {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if got := answer(t, db, settledSQL); got != settledAll {
		t.Errorf("%s, want %s", got, settledAll)
	}
	ran := answer(t, db, `select count(*)::text from pawl.runs`)
	if code, said := backfillInvoices(t, db, "--wait"); code != codeConflict || !strings.Contains(said, "nothing to backfill") {
		t.Errorf("again: exit code %d: %s", code, said)
	}
	if again := answer(t, db, `select count(*)::text from pawl.runs`); again != ran || ran != "1826" {
		t.Errorf("%s runs, and %s after the same command", ran, again)
	}
}

func TestABackfillWhoseServerIsKilledHalfwayEndsTheSame(t *testing.T) {
	t.Parallel()
	db := store(t)
	p := serveInvoices(t, db)
	if code, said := backfillInvoices(t, db); code != codeOK {
		t.Fatalf("exit code %d: %s", code, said)
	}
	pgtest.Eventually(t, 60*time.Second, "half of the days are settled", func() bool {
		return answer(t, db, `select (count(*) > 600)::text from pawl.periods where state = 'complete'`) == "true"
	})
	p.signal(t, syscall.SIGKILL)
	p.ends(t, 10*time.Second)
	if answer(t, db, `select (count(*) filter (where state = 'complete') < 1826)::text from pawl.periods`) != "true" {
		t.Fatal("everything was settled before it was killed")
	}
	serveInvoices(t, db)
	if code, said := backfillInvoices(t, db, "--wait"); code != codeOK || !strings.Contains(said, "all 1,826 periods are complete") {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if got := answer(t, db, settledSQL); got != settledAll {
		t.Errorf("%s, want %s", got, settledAll)
	}
	if n := answer(t, db, `select count(*)::text from pawl.runs where state = 'complete'`); n != "1826" {
		t.Errorf("%s runs are complete", n)
	}
}
