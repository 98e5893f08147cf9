package kinds_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/faults"
	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/jobs/kinds"
)

func TestArgumentsAreBound(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (*pgxpool.Pool, *pgxpool.Pool){
		"direct": func(t *testing.T) (*pgxpool.Pool, *pgxpool.Pool) {
			t.Helper()
			p := pgtest.New(t)
			return p, p
		},
		"where pgx would paste them": func(t *testing.T) (*pgxpool.Pool, *pgxpool.Pool) {
			t.Helper()
			url := pgtest.URL(t)
			pasting := "&default_query_exec_mode=simple_protocol"
			if !strings.Contains(url, "?") {
				pasting = " default_query_exec_mode=simple_protocol"
			}
			return pgtest.Open(t, url), pgtest.Open(t, url+pasting)
		},
		"through a pooler": func(t *testing.T) (*pgxpool.Pool, *pgxpool.Pool) {
			t.Helper()
			url := pgtest.URL(t)
			return pgtest.Open(t, url), pgtest.Open(t, pgtest.Pooler(t, url))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct, pool := open(t)
			exec(t, direct, `create table t (day date, start timestamptz, mode text, n int, ok boolean, note text, amount numeric, label text, query text)`)
			evil := `'); drop table t; --`
			j := job(t, kinds.SQL{
				Text: `insert into t (mode, n, ok, note, amount, label) values ($3, $4, $5, $6, $7, $8);
					-- a day and its beginning, which is another day's in UTC
					update t set day = $1, start = $2, query = current_query() where mode = $3;
					select * from t, generate_series(1, 3) where day = $2::text::date`,
				Args:   []any{template("{{period.key}}"), template("{{period.start}}"), template("{{params.mode}}"), int64(7), true, nil, 1.25, int64(7)},
				Expect: kinds.Rows{Op: "=", N: 3},
			})
			j.Params = text("mode", evil)
			j = in(t, "Asia/Tokyo", j)
			start(t, jobs.Config{Pool: pool, Direct: direct}, j)
			r := run(t, direct)
			if r.State != "complete" || !strings.HasPrefix(r.text(), "1: INSERT 0 1 (") || !strings.Contains(r.text(), "\n3: SELECT 3 (") {
				t.Fatalf("%s %q %q", r.State, r.Error, r.text())
			}
			if n := count(t, direct, `select count(*) from t where day = $1::text::date and start = (($1 || ' 00:00')::timestamp at time zone 'Asia/Tokyo')
				and mode = $2 and n = 7 and ok and note is null and amount = 1.25 and label = '7' and query like '%$3%' and query not like '%drop%'`, r.Key, evil); n != 1 {
				t.Error("the row isn't what was bound")
			}
		})
	}
}

func TestStatementsExpectationAndCompletionAreOneCommit(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			exec(t, pool, `create table t (n int); create table want (n int); insert into want select 1 from generate_series(1, 3)`)
			j := job(t, kinds.SQL{Text: `insert into t select n from want; insert into t select 2 from want limit 2`, Expect: kinds.Rows{Op: ">", N: 1}})
			j.Isolation = level
			start(t, jobs.Config{Pool: pool}, j)
			r := run(t, pool)
			if n := count(t, pool, `select count(*) from t`); r.State != "complete" || n != 5 {
				t.Fatalf("%s %q, %d rows", r.State, r.Error, n)
			}
			if level != pgx.ReadCommitted {
				return // the run's end follows, and writes the period once more
			}
			if n := count(t, pool, `select count(distinct x) from (select xmin::text as x from t union all select xmin::text from pawl.periods) s`); n != 1 {
				t.Errorf("%d transactions", n)
			}
		})
	}
}

func TestAnExpectationThatIsNotMetCommitsNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	exec(t, pool, `create table t (n int)`)
	j := job(t, kinds.SQL{Text: `insert into t values (1); select * from t where false`, Expect: kinds.Rows{Op: ">", N: 0}})
	j.MaxRetries = jobs.NoRetries
	start(t, jobs.Config{Pool: pool}, j)
	r := run(t, pool)
	if n := count(t, pool, `select count(*) from t`); n != 0 || r.State != "failed" || r.period != "dead failed" ||
		!strings.Contains(r.Error, "last statement: 0 rows, expected >0") {
		t.Errorf("%d rows; %s %q %s", n, r.State, r.Error, r.period)
	}
}

// The lease is forced while a statement waits: what it would have done is refused, and done once by the next run.
func TestAStaleSingleTransactionCommitsNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	exec(t, pool, `create table t (n int); insert into t values (0)`)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), `select from t for update`); err != nil {
		t.Fatal(err)
	}
	j := job(t, kinds.SQL{Text: `update t set n = n + 1`})
	j.TTL = time.Minute // no beat tells of the loss
	start(t, jobs.Config{Pool: pool}, j)
	until(t, pool, 1, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like 'update t %'`)
	force(t, pool)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'complete'`)
	all := runs(t, pool, 2)
	if n := count(t, pool, `select n from t`); n != 1 || all[0].State != "lost" || all[1].State != "complete" {
		t.Errorf("n is %d; %s, %s", n, all[0].State, all[1].State)
	}
	if n := count(t, pool, `select count(*) from pawl.refusals`); n == 0 {
		t.Error("no refusal was recorded")
	}
}

func TestStatementsWithCheckpointsAreDoneOnceEach(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	exec(t, pool, `create table t (n int)`)
	j := job(t, kinds.SQL{Transaction: kinds.PerStatement, Text: `insert into t values (1); insert into later values (2); insert into t values (3)`, Expect: kinds.Rows{Op: "=", N: 1}})
	start(t, jobs.Config{Pool: pool}, j)
	until(t, pool, 1, `select count(*) from pawl.runs where state = 'failed'`)
	exec(t, pool, `create table later (n int)`)
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'complete'`)
	if n := count(t, pool, `select count(*) from t`) + 10*count(t, pool, `select count(*) from later`); n != 12 {
		t.Errorf("%d", n)
	}
	if r := runs(t, pool, 1)[0]; !strings.Contains(r.Error, `statement 2 of 3: ERROR: relation "later" does not exist`) || r.Done == nil || *r.Done != 1 || *r.Total != 3 {
		t.Errorf("%+v", r)
	}
}

// steps has three statements, of which the second takes long the first time.
func steps(context.Context, *pgxpool.Pool) ([]jobs.Job, error) {
	fn, err := kinds.SQL{
		Transaction: kinds.PerStatement,
		Text: `insert into t values ('a', $1); with w as (select pg_sleep(case when count(*) = 0 then 600 else 0 end) from slept)
			insert into t select 'b', $1 from w; insert into t values ('c', $1)`,
		Args: []any{template("{{run.attempt}}")},
	}.Func()
	return []jobs.Job{{Name: "x", Schedule: "0 0 * * *", Start: yesterday(), TTL: time.Second, RetryDelay: time.Second, Func: fn}}, err
}

func TestAKilledWorkersStatementsGoOnAfterTheLastCheckpoint(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := pgtest.Open(t, url)
	exec(t, pool, `create table t (step text, attempt text); create table slept (n int)`)
	w := faults.Spawn(t, "steps", url)
	until(t, pool, 1, `select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`)
	w.Kill(t)
	exec(t, pool, `insert into slept values (1)`)
	faults.Spawn(t, "steps", url)
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'complete'`)
	var got string
	if err := pool.QueryRow(t.Context(), `select string_agg(step || attempt, ' ' order by step) from t`).Scan(&got); err != nil || got != "a1 b2 c2" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAnotherDatabaseIsReachedByItsPool(t *testing.T) {
	t.Parallel()
	pool, other := pgtest.New(t), pgtest.New(t)
	exec(t, other, `create table t (n int, level text)`)
	start(t, jobs.Config{Pool: pool}, job(t, kinds.SQL{
		Database: other, Transaction: kinds.PerStatement, Isolation: pgx.RepeatableRead,
		Text: `insert into t values ($1, current_setting('transaction_isolation')); insert into t select n + 1, level from t`, Args: []any{int64(1)}, Expect: kinds.Rows{Op: "=", N: 1},
	}))
	if r := run(t, pool); r.State != "complete" {
		t.Errorf("%+v", r)
	}
	if n := count(t, other, `select sum(n)::int from t where level = 'repeatable read'`); n != 3 {
		t.Errorf("%d", n)
	}
	if n := count(t, pool, `select (value ->> 'done')::int from pawl.checkpoints`); n != 2 {
		t.Errorf("the checkpoint is %d", n)
	}
}

func TestWrongSQLIsRefused(t *testing.T) {
	t.Parallel()
	one := func(text string) kinds.SQL { return kinds.SQL{Text: text} }
	mustFail(t, one(" -- nothing"), "at least one statement")
	mustFail(t, one("select 1; commit"), `"COMMIT"`)
	mustFail(t, one("set search_path = x; select 1"), "write SET LOCAL")
	mustFail(t, one("select $1"), "uses $1")
	mustFail(t, kinds.SQL{Text: "select $0", Args: []any{1}}, "uses $0")
	mustFail(t, kinds.SQL{Text: "select 1", Transaction: "none"}, `Transaction "none"`)
	mustFail(t, kinds.SQL{Text: "select 1", Database: new(pgxpool.Pool)}, "needs pawl's own database")
	mustFail(t, kinds.SQL{Text: "select 1", Expect: kinds.Rows{Op: "~"}}, `Expect "~"`)
}
