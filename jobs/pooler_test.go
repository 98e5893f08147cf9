package jobs_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

func TestADirectWayPastThePoolerListens(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	look := pgtest.Open(t, direct)
	pool := pgtest.Open(t, pgtest.Pooler(t, direct))
	_, l, _ := start(t, jobs.Config{Pool: pool, Direct: look}, jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(3), Func: nothing})
	until(t, look, 3, completeSQL, "settle")
	pgtest.Eventually(t, 10*time.Second, "the log says that it doesn't poll", func() bool { return l.has("runner started", "polling=false") })
	if n := count(t, look, `select count(*) from pg_stat_activity where datname = current_database() and query ~* '^listen'`); n == 0 {
		t.Error("nobody listens")
	}
}

func TestADirectWayToAnotherDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	r, err := jobs.New(jobs.Config{Pool: pgtest.New(t), Direct: pgtest.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another database") {
		t.Errorf("Run = %v, want a refusal", err)
	}
}

func TestRunsWorkBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	look := pgtest.Open(t, direct)
	pool := pgtest.Open(t, pgtest.Pooler(t, direct))
	if _, err := look.Exec(t.Context(), `create table result (key text, token bigint)`); err != nil {
		t.Fatal(err)
	}
	job := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(6), TTL: time.Second, Func: func(ctx context.Context, run *jobs.Run) error {
		err := run.Tx(ctx, func(tx pgx.Tx) error { return run.Checkpoint(ctx, tx, "half") })
		if err != nil {
			return err
		}
		run.Progress(1, 2)
		return run.Complete(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `insert into result select $1, $2 from pg_sleep(0.2)`, run.Period.Key, run.Token().Seq)
			return err
		})
	}}
	plain := jobs.Job{Name: "plain", Schedule: "@daily", Start: daysAgo(6), Func: nothing} // handed over
	_, l, _ := start(t, jobs.Config{Pool: pool}, job, plain)
	until(t, look, 6, completeSQL, "settle")
	until(t, look, 6, completeSQL, "plain")
	if n := count(t, look, `select count(distinct key) from result`); n != 6 {
		t.Errorf("%d results, want 6", n)
	}
	pgtest.Eventually(t, 10*time.Second, "the log says that it polls", func() bool { return l.has("runner started", "polling=true") })
}

func TestAPoolThatPreparesBehindAPoolerIsRefused(t *testing.T) {
	t.Parallel()
	through := strings.Replace(pgtest.Pooler(t, pgtest.URL(t)), "default_query_exec_mode=exec", "default_query_exec_mode=cache_statement", 1)
	r, err := jobs.New(jobs.Config{Pool: pgtest.Open(t, through)})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "default_query_exec_mode=exec") {
		t.Errorf("Run = %v, want it to name the setting", err)
	}
}
