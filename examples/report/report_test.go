package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/examples/internal/crew"
	"pawl/internal/pgtest"
	"pawl/jobs"
)

var (
	soak  = crew.NewSoak(flag.CommandLine)
	large = flag.Int("large", 200_000, "invoices of the one large statement")
)

// TestMain is also the entry of the workers.
func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		if err := work(); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func storms(t *testing.T, seed uint64, variant string) result {
	t.Helper()
	r := &round{
		url: pgtest.URL(t), dir: t.TempDir(), in: input{tenants: 10, months: 6, invoices: 100, first: firstMonth(6)},
		pace: 60 * time.Millisecond, seed: seed, variant: variant, log: io.Discard, say: t.Logf,
	}
	out, err := r.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d: %+v", seed, out)
	return out
}

func TestReadersSeeNoTornStaleOrMissingStatementInAStorm(t *testing.T) {
	t.Parallel()
	var faults crew.Faults
	var statements int64
	var reads int
	for seed := range soak.Seeds() {
		out := storms(t, seed, "")
		if !out.OK {
			t.Errorf("seed %d: %q", seed, out.Wrong)
		}
		if out.Takeovers == 0 || out.Reads < 100 || out.Statements < 120 {
			t.Errorf("seed %d: it was no storm: %+v", seed, out)
		}
		faults.Add(out.Faults)
		statements, reads = statements+out.Statements, reads+out.Reads
	}
	if faults.Kills == 0 || faults.Pauses == 0 { // a round may be over before the second of them
		t.Errorf("%d kills, %d pauses", faults.Kills, faults.Pauses)
	}
	t.Logf("%d rounds: %+v", soak.Rounds, faults)
	if t.Failed() {
		return
	}
	right := fmt.Sprintf("%d statements, %d reads of them, none torn, stale, missing or wrong", statements, reads)
	if err := soak.Record("report", faults, right); err != nil {
		t.Error(err)
	}
}

// The test above must be able to fail. A storm may spare one.
func TestTheStormFindsOutWhoPublishesWithoutAFence(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{renameOnly, unguarded} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(5) {
				if out := storms(t, seed, variant); !out.OK {
					return
				}
			}
			t.Error("five storms have found nothing wrong")
		})
	}
}

// publishes runs one job on a fresh store and returns what reads it.
func publishes(t *testing.T, pool *pgxpool.Pool, work func(ctx context.Context, run *jobs.Run) error) *jobs.Artifacts {
	t.Helper()
	store, err := jobs.NewArtifactDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	runner, err := jobs.New(jobs.Config{Pool: pool, Artifacts: store, NoPrune: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var failed error
	err = runner.Add(jobs.Job{Name: "once", Schedule: "@daily", Start: time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1).Add(time.Hour), Func: func(ctx context.Context, run *jobs.Run) error {
		defer cancel()
		failed = work(ctx, run)
		return failed
	}})
	if err == nil {
		err = runner.Run(ctx)
	}
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	a, err := jobs.NewArtifacts(jobs.ArtifactsConfig{Pool: pool, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func reported(t *testing.T) (*reports, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.New(t)
	if err := create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	return &reports{pool: pool, publish: fenced}, pool
}

func TestARealStoresStatementsAddUpToTheCent(t *testing.T) {
	t.Parallel()
	r, pool := reported(t)
	pgtest.Invoices(t, pool)
	const sql = `
with i as (insert into report_demo.invoices select regexp_replace(lower(billing_country), '[^a-z0-9]+', '-', 'g'), invoice_id, invoice_date at time zone 'UTC',
  'customer ' || customer_id, (total * 100)::bigint from invoice returning tenant)
insert into report_demo.tenants select distinct tenant, tenant from i`
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	all, err := tenants(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	a := publishes(t, pool, func(ctx context.Context, run *jobs.Run) error {
		for _, tenant := range all {
			whole := statement{tenant, "all", time.Time{}, run.Period.End}
			if err := r.statement(ctx, run, whole); err != nil {
				return err
			}
		}
		return nil
	})
	var csvs, pages total
	for _, tenant := range all {
		for file, sum := range map[string]*total{csvOf(tenant): &csvs, pageOf(tenant): &pages} {
			b, err := byPointer(a)(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			_, said, err := parse(file, tenant, b)
			if err != nil {
				t.Fatal(err)
			}
			sum.rows, sum.cents = sum.rows+said.rows, sum.cents+said.cents
		}
	}
	if want := (total{412, 232_860}); len(all) != 24 || csvs != want || pages != want {
		t.Errorf("%d countries, %+v and %+v, want 24 and %+v", len(all), csvs, pages, want)
	}
}

func TestWhatACustomerIsCalledIsNoMarkup(t *testing.T) {
	t.Parallel()
	r, pool := reported(t)
	first := firstMonth(1)
	if err := generate(t.Context(), pool, input{1, 1, 10, first}); err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	s := statement{"tenant-01", "m", first, first.AddDate(0, 1, 0)}
	if err := s.write(t.Context(), r.pool, newPage(&page)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "<b>") || !strings.Contains(page.String(), "&lt;b&gt;") {
		t.Error("a name is markup")
	}
}
