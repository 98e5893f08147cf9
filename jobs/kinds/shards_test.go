package kinds_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/jobs/kinds"
)

// cut is job x, parted by what a statement lists.
func cut(t *testing.T, by kinds.ShardKeys, fn jobs.Func) jobs.Job {
	t.Helper()
	keys, err := by.Func()
	if err != nil {
		t.Fatal(err)
	}
	return jobs.Job{Name: "x", Schedule: "0 0 * * *", Start: yesterday(), MaxRetries: jobs.NoRetries, ShardKeys: keys, Func: fn}
}

// period waits for the end of the period, and returns its state and what the last failed run said.
func period(t *testing.T, pool *pgxpool.Pool) (state, said string) {
	t.Helper()
	until(t, pool, 1, `select count(*) from pawl.periods where parent is null and ended_at is not null`)
	err := pool.QueryRow(t.Context(), `select (select state from pawl.periods where parent is null),
		coalesce((select error from pawl.runs where state = 'failed' order by started_at desc limit 1), '')`).Scan(&state, &said)
	if err != nil {
		t.Fatal(err)
	}
	return state, said
}

func TestAStatementListsTheShardsOncePerRevision(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]bool{"pawl's database": false, "another database": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			tenants := pool
			by := kinds.ShardKeys{
				Text: `select id from tenants where since <= $1::timestamptz and mode = $2 order by id desc -- the largest first`,
				Args: []any{template("{{period.end}}"), template("{{params.mode}}")},
			}
			if other {
				tenants = pgtest.New(t)
				by.Database = tenants
			}
			exec(t, tenants, `create table tenants (id bigint, since timestamptz, mode text);
				insert into tenants select i, now() - interval '1 year', 'full' from generate_series(1, 3) i;
				insert into tenants values (4, now() + interval '9 days', 'full'), (5, now() - interval '9 days', 'dry')`)
			exec(t, pool, `create table done (revision int, key text, no int, of int)`)
			j := cut(t, by, func(ctx context.Context, run *jobs.Run) error {
				// From the first shard on the table says something else.
				if _, err := tenants.Exec(ctx, `insert into tenants values (6, now() - interval '9 days', 'full')`); err != nil {
					return err
				}
				s := run.Shard
				_, err := pool.Exec(ctx, `insert into done values ($1, $2, $3, $4)`, run.Revision, s.Key, s.Index, s.Count)
				return err
			})
			j.Params = text("mode", "full")
			start(t, jobs.Config{Pool: pool}, j)
			if state, said := period(t, pool); state != "complete" {
				t.Fatalf("%s: %s", state, said)
			}
			if n := count(t, pool, `select count(*) from done where revision = 1 and (key, no, of) in (('3', 0, 3), ('2', 1, 3), ('1', 2, 3))`); n != 3 || count(t, pool, `select count(*) from done`) != 3 {
				t.Errorf("%d shards are as they were listed", n)
			}
			exec(t, tenants, `delete from tenants where id = 6; insert into tenants values (7, now() - interval '9 days', 'full')`)
			if _, err := jobs.Rerun(t.Context(), pool, "x", yesterday().Add(2*time.Hour).Format("2006-01-02"), jobs.RerunConfig{Actor: "ann", Reason: "a tenant more"}); err != nil {
				t.Fatal(err)
			}
			until(t, pool, 1, `select count(*) from pawl.periods where revision = 2 and shards = 4`)
		})
	}
}

func TestAWrongListOfShardsSaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"null":        {`select null::text`, "shards: row 1 is null: select keys only"},
		"two columns": {`values ('a', 'b')`, "shards: the statement gives 2 columns: select the keys alone"},
		"a bad key":   {`values ('a'), ('b#c')`, `shards: row 2, "b#c", can't be a key: use a letter or digit`},
		"twice":       {`values ('a'), ('a')`, `shards: row 2, "a", can't be a key: list it once`},
		"too many":    {`select generate_series(1, 20000)`, "shards: the statement gives more than 10000 rows: select fewer"},
		"it fails":    {`select 1 / 0`, "shards: ERROR: division by zero"},
		"it writes":   {`with x as (insert into t values ('a') returning id) select id from x`, "read-only transaction"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			exec(t, pool, `create table t (id text)`)
			j := cut(t, kinds.ShardKeys{Text: c.text}, func(context.Context, *jobs.Run) error { return nil })
			start(t, jobs.Config{Pool: pool}, j)
			if state, said := period(t, pool); state != "dead" || !strings.Contains(said, c.want) {
				t.Errorf("%s: %s", state, said)
			}
			if n := count(t, pool, `select count(*) from t`); n != 0 {
				t.Error("it has written")
			}
		})
	}
}

func TestAListOfShardsIsOneQuery(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "0 statements",
		"-- nothing":                 "0 statements",
		"select 1; select 2":         "2 statements",
		"delete from t returning id": `"DELETE": begin with select`,
		"select id from t where $2":  "a statement uses $2",
	} {
		mustFail(t, kindOf(func() error { _, err := kinds.ShardKeys{Text: text, Args: []any{1}}.Func(); return err }), want)
	}
	for _, text := range []string{"select 1;", "(select 1)", "with a as (select 1) select * from a", "values (1)", "table t"} {
		if _, err := (kinds.ShardKeys{Text: text}).Func(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	mustFail(t, kindOf(func() error { _, err := kinds.Reduce{Text: "select $1"}.Func(); return err }), "a statement uses $1")
}

// kindOf is a kind that fails so.
type kindOf func() error

func (k kindOf) Func() (jobs.Func, error) { return nil, k() }

func TestAnExpectationOfTheReductionKeepsThePeriodFromCompletion(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	exec(t, pool, `create table total (day text, parts int); create table part (day text, shard text)`)
	insert := kinds.SQL{Text: `insert into part values ($1, $2)`, Args: []any{template("{{period.key}}"), template("{{shard.key}}")}}
	fn, err := insert.Func()
	if err != nil {
		t.Fatal(err)
	}
	j := cut(t, kinds.ShardKeys{Text: `values ('north'), ('south')`}, fn)
	reduction := func(n int64) jobs.Reduce {
		f, err := kinds.Reduce{
			Text: `insert into total select $1, count(*) from part where day = $1; select * from part where day = $1`,
			Args: []any{template("{{period.key}}")}, Expect: kinds.Rows{Op: "=", N: n},
		}.Func()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	j.Reduce = reduction(3)
	stop := start(t, jobs.Config{Pool: pool}, j)
	state, said := period(t, pool)
	if state != "dead" || !strings.Contains(said, "last statement: 2 rows, expected =3: nothing of it was committed") {
		t.Errorf("%s: %s", state, said)
	}
	if n := count(t, pool, `select count(*) from total`); n != 0 {
		t.Error("the reduction that failed has written")
	}
	const kept = `select count(*) from pawl.outputs o join pawl.runs r on r.id = o.run where r.key not like '%#%' and r.state = $1 and convert_from(o.head, 'UTF8') like '1: INSERT 0 1 (%'`
	until(t, pool, 1, kept, "failed")
	_ = stop()
	j.Reduce = reduction(2)
	start(t, jobs.Config{Pool: pool}, j)
	if err := jobs.Retry(t.Context(), pool, "x", yesterday().Add(2*time.Hour).Format("2006-01-02"), "ann"); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 1, `select count(*) from pawl.periods p join total t on t.day = p.key and t.xmin = p.xmin where p.state = 'complete' and t.parts = 2`)
	until(t, pool, 1, kept, "complete")
	if n := count(t, pool, `select count(*) from part`); n != 2 {
		t.Errorf("%d parts: a shard that was complete has run again", n)
	}
}

// The variables of a shard are a command's in a shard alone, even if this process is itself a command of one.
func TestACommandKnowsItsShard(t *testing.T) {
	t.Setenv("PAWL_SHARD", "of another")
	t.Setenv("PAWL_SHARDS", "99")
	t.Setenv("PAWL_SHARD_INDEX", "7")
	cmd := shell(`echo "$PAWL_PERIOD ${PAWL_SHARD-unset} ${PAWL_SHARD_INDEX-unset} ${PAWL_SHARDS-unset} $PAWL_LOCK $PAWL_TOKEN $PART"`)
	cmd.Env = map[string]kinds.Text{"PART": template("{{shard.key}} {{shard.index}} {{shard.count}}")}
	cmd.InheritEnv = true
	for name, c := range map[string]struct {
		by   string
		want []string
	}{
		"in shards":      {`values ('north'), ('south')`, []string{"north 0 2 job:x#north TOKEN north 0 2", "south 1 2 job:x#south TOKEN south 1 2"}},
		"without shards": {"", []string{"unset unset unset job:x TOKEN  0 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			pool := pgtest.New(t)
			j := job(t, cmd)
			if c.by != "" {
				j = cut(t, kinds.ShardKeys{Text: c.by}, j.Func)
			}
			start(t, jobs.Config{Pool: pool}, j)
			if state, said := period(t, pool); state != "complete" {
				t.Fatalf("%s: %s", state, said)
			}
			var got []string
			rows, err := pool.Query(t.Context(), `select replace(convert_from(o.head, 'UTF8'), ' ' || r.token || ' ', ' TOKEN ') from pawl.outputs o join pawl.runs r on r.id = o.run order by r.key`)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				var s string
				if err := rows.Scan(&s); err != nil {
					t.Fatal(err)
				}
				_, after, _ := strings.Cut(strings.TrimSuffix(s, "\n"), " ")
				got = append(got, after)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("said %q, want %q", got, c.want)
			}
		})
	}
}

// Two shards of a period send two requests: a receiver that keeps keys must not take one for the other.
func TestShardsSendUnderKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	x := receive(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 0 {
			w.WriteHeader(http.StatusServiceUnavailable) // and is asked again
		}
	})
	fn, err := kinds.HTTP{URL: template(x.URL + "/{{shard.key}}"), Body: kinds.Body{JSON: map[string]any{"part": template("{{shard.index}} of {{shard.count}}")}}}.Func()
	if err != nil {
		t.Fatal(err)
	}
	j := cut(t, kinds.ShardKeys{Text: `values ('north'), ('south')`}, fn)
	j.MaxRetries, j.RetryDelay, j.RetryMaxDelay = 2, time.Millisecond, time.Millisecond
	start(t, jobs.Config{Pool: pool}, j)
	if state, said := period(t, pool); state != "complete" {
		t.Fatalf("%s: %s", state, said)
	}
	day := yesterday().Add(2 * time.Hour).Format("2006-01-02")
	keys := map[string][]string{}
	for _, q := range x.requests() {
		keys[q.URL.Path+" "+q.body] = append(keys[q.URL.Path+" "+q.body], q.Header.Get("Idempotency-Key"))
		if lock := q.Header.Get("Pawl-Lock"); lock != "job:x#"+q.URL.Path[1:] {
			t.Errorf("%s came under %s", q.URL.Path, lock)
		}
	}
	north, south := keys[`/north {"part":"0 of 2"}`], keys[`/south {"part":"1 of 2"}`]
	if len(keys) != 2 || len(north)+len(south) != 3 || len(slices.Compact(north)) != 1 || len(slices.Compact(south)) != 1 || north[0] == south[0] {
		t.Errorf("requests came with the keys %q", keys)
	}
	if !strings.HasPrefix(north[0], "x:"+day) || !strings.Contains(north[0], "#north") {
		t.Errorf("the key of north is %q", north[0])
	}
}
