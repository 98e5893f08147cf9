package jobfile_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pawl/internal/faults"
	"pawl/internal/pgtest"
	"pawl/jobs"
)

const shardsFile = `version: 1
app: shop
defaults: {owner: us, retries: {max: 0}}
jobs:
  - name: report
    kind: command
    schedule: "@manual"
    shards: {statement: select id from tenant order by id}
    reduce:
      statement: insert into total select 'report', $1, 3
      args: ["{{period.key}}"]
      expect: {rows: 1}
    command:
      shell: true
      argv: echo "$PART:$PAWL_SHARD:$PAWL_SHARD_INDEX:$PAWL_SHARDS:$PAWL_LOCK" >> "$OUT"
      env: {OUT: %q, PART: "{{shard.key}}"}

  - name: settle
    kind: sql
    schedule: "@manual"
    shards: 4
    reduce:
      statement: insert into total select 'settle', $1, sum(n) from part where day = $1
      args: ["{{period.key}}"]
      expect: {rows: 1}
    sql:
      statement: insert into part select $1, $2::int, count(*) from account where id %% $3::int = $2::int
      args: ["{{period.key}}", "{{shard.index}}", "{{shard.count}}"]
      expect: {rows: 1}

  - name: notify
    kind: http
    schedule: "@manual"
    shards: [north, south]
    reduce: {statement: "insert into total select 'notify', $1, 2", args: ["{{period.key}}"]}
    http:
      url: "%s/{{shard.key}}"
      body: {json: {part: "{{shard.index}} of {{shard.count}}"}}

  - name: recon
    kind: go
    schedule: "@manual"
    shards: [a, b]
    reduce: {statement: "insert into total select 'recon', $1, 2", args: ["{{period.key}}"]}
    go: {}
`

// Each shard of each kind runs once, two at a time on two runners, and what reduces them is there exactly when the period is
// complete.
func TestShardsOfAFileRunOnceEachOnTwoRunnersAndAreReducedWithTheCompletion(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	exec(t, pool, `create table tenant (id text); insert into tenant values ('acme'), ('bolt'), ('crane');
		create table account (id int); insert into account select generate_series(1, 101);
		create table part (day text, shard int, n bigint, primary key (day, shard));
		create table total (job text, key text, n bigint, primary key (job, key))`)
	out := filepath.Join(t.TempDir(), "out")
	var mu sync.Mutex
	asked := map[string]string{}
	bank := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path] += r.Header.Get("Idempotency-Key") + " " + r.Header.Get("Pawl-Lock") + " "
	}))
	t.Cleanup(bank.Close)
	both := make(chan string, 2)
	met := make(chan struct{})
	handlers := map[string]jobs.Func{"recon": func(ctx context.Context, run *jobs.Run) error {
		if both <- fmt.Sprint(run.Shard); len(both) == 2 {
			close(met)
		}
		select { // each runner has room for one
		case <-met:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}
	file := write(t, fmt.Sprintf(shardsFile, out, bank.URL))
	for _, holder := range []string{"one", "two"} {
		serve(t, jobs.Config{Pool: pool, Concurrency: 1, Holder: holder}, file, handlers)
	}
	key := map[string]string{}
	for _, job := range []string{"report", "settle", "notify", "recon"} {
		key[job] = trigger(t, pool, job)
	}
	until(t, pool, 4, `select count(*) from pawl.periods where parent is null and state = 'complete'`)
	for what, sql := range map[string]string{
		"runs of shards that aren't the only ones":     `select count(*) from pawl.runs where key like '%#%' and (attempt > 1 or state <> 'complete')`,
		"totals without their completion":              `select count(*) from total t left join pawl.periods p using (job, key) where t.xmin is distinct from p.xmin or p.state <> 'complete'`,
		"totals that are wrong":                        `select count(*) from total where n <> case job when 'report' then 3 when 'settle' then 101 else 2 end`,
		"shards that don't run under a lock of theirs": `select count(*) from pawl.runs where key like '%#%' and lock <> 'job:' || job || '#' || split_part(key, '#', 2)`,
		"locks that are held":                          `select count(*) from pawl.locks where grant_id is not null`,
	} {
		if n := count(t, pool, sql); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	for what, want := range map[string]int{
		`select count(*) from pawl.runs where key like '%#%'`:                                     3 + 4 + 2 + 2,
		`select count(*) from total`:                                                              4,
		`select count(distinct holder) from pawl.runs where job = 'recon' and key like '%#%'`:     2,
		`select count(*) from part where n = (select count(*) from account where id % 4 = shard)`: 4,
	} {
		if n := count(t, pool, what); n != want {
			t.Errorf("%s: %d, want %d", what, n, want)
		}
	}
	got := lines(t, out)
	slices.Sort(got)
	if want := []string{"acme:acme:0:3:job:report#acme", "bolt:bolt:1:3:job:report#bolt", "crane:crane:2:3:job:report#crane"}; !slices.Equal(got, want) {
		t.Errorf("commands said %q, want %q", got, want)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, shard := range []string{"north", "south"} {
		if words := strings.Fields(asked["/"+shard]); len(words) != 2 || !strings.HasPrefix(words[0], "notify:"+key["notify"]) || !strings.Contains(words[0], "#"+shard) || words[1] != "job:notify#"+shard {
			t.Errorf("%s was asked with %q", shard, asked["/"+shard])
		}
	}
	words := []string{<-both, <-both}
	slices.Sort(words)
	if !slices.Equal(words, []string{"{a 0 2}", "{b 1 2}"}) {
		t.Errorf("the function's shards were %q", words)
	}
}

// A shard whose worker is killed is resumed alone: what the others have done isn't done again, and they have one run.
func TestAShardOfAFileWhoseWorkerIsKilledIsResumedAlone(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := pgtest.Open(t, url)
	dir := t.TempDir()
	file := write(t, fmt.Sprintf(`version: 1
defaults: {owner: us, ttl: 2s, retries: {max: 2, min_delay: 1s, max_delay: 1s}}
jobs:
  - name: report
    kind: command
    schedule: "@manual"
    shards: [quick, slow]
    reduce: {statement: "insert into total select 'report', $1", args: ["{{period.key}}"]}
    command:
      shell: true
      argv: |
        echo "$PAWL_SHARD:$PAWL_ATTEMPT" >> out
        while [ "$PAWL_SHARD" = slow ] && [ ! -e go ]; do sleep 0.02; done
      dir: %q
  - name: settle
    kind: sql
    schedule: "@manual"
    shards: [quick, slow]
    reduce: {statement: "insert into total select 'settle', $1", args: ["{{period.key}}"]}
    sql:
      transaction: per_statement
      statement: |
        insert into part values ($1, 'first');
        select pg_advisory_xact_lock(hashtext($1));
        insert into part values ($1, 'third');
      args: ["{{shard.key}}"]
`, dir))
	exec(t, pool, `create table job_file (name text); create table total (job text primary key, key text); create table part (shard text, step text, primary key (shard, step));
		insert into job_file values ('`+file+`')`)
	gate, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Release()
	if _, err := gate.Exec(t.Context(), `select pg_advisory_lock(hashtext('slow'))`); err != nil {
		t.Fatal(err)
	}
	w := faults.Spawn(t, "file", url)
	trigger(t, pool, "report")
	trigger(t, pool, "settle")
	until(t, pool, 2, `select count(*) from pawl.periods where shard = 'quick' and state = 'complete'`)
	until(t, pool, 1, `select count(*) from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())`)
	pgtest.Eventually(t, 60*time.Second, "the slow command works", func() bool { return len(lines(t, filepath.Join(dir, "out"))) == 2 })
	w.Kill(t)
	faults.Spawn(t, "file", url)
	until(t, pool, 2, `select count(*) from pawl.runs where key like '%#slow' and attempt = 2 and ended_at is null`)
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := gate.Exec(t.Context(), `select pg_advisory_unlock(hashtext('slow'))`); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 2, `select count(*) from pawl.periods p join total t on t.job = p.job and t.key = p.key and t.xmin = p.xmin where p.state = 'complete'`)
	for what, want := range map[string]int{
		`select count(*) from pawl.runs where key like '%#quick'`:                                       2,
		`select count(*) from pawl.runs where key like '%#slow' and (state, attempt) = ('lost', 1)`:     2,
		`select count(*) from pawl.runs where key like '%#slow' and (state, attempt) = ('complete', 2)`: 2,
		`select count(*) from part`: 4,
		`select count(*) from pawl.periods where parent is null and (state <> 'complete' or attempts > 1)`: 0,
	} {
		if n := count(t, pool, what); n != want {
			t.Errorf("%s: %d, want %d", what, n, want)
		}
	}
	got := lines(t, filepath.Join(dir, "out"))
	slices.Sort(got)
	if want := []string{"quick:1", "slow:1", "slow:2"}; !slices.Equal(got, want) {
		t.Errorf("commands said %q, want %q", got, want)
	}
}

func TestAWrongExpectationOfAFilesReductionLeavesThePeriodNotCompleteAndSaysWhy(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	exec(t, pool, `create table part (key text, shard text); create table total (key text, n bigint)`)
	const source = `version: 1
defaults: {owner: us, retries: {max: 0}}
jobs:
  - name: settle
    kind: sql
    schedule: "@manual"
    shards: [north, south]
    sql: {statement: "insert into part values ($1, $2)", args: ["{{period.key}}", "{{shard.key}}"]}
    reduce:
      statement: |
        insert into total select $1, count(*) from part where key = $1;
        select from part where key = $1;
      args: ["{{period.key}}"]
      expect: {rows: %d}
`
	stop := serve(t, jobs.Config{Pool: pool}, write(t, fmt.Sprintf(source, 3)), nil)
	key := trigger(t, pool, "settle")
	until(t, pool, 1, `select count(*) from pawl.periods where parent is null and state = 'dead'`)
	until(t, pool, 1, `select count(*) from pawl.runs where key = $1 and state = 'failed' and error like '%last statement: 2 rows, expected =3: nothing of it was committed%'`, key)
	if n := count(t, pool, `select count(*) from total`); n != 0 {
		t.Error("a reduction whose expectation fails has written")
	}
	stop()
	serve(t, jobs.Config{Pool: pool}, write(t, fmt.Sprintf(source, 2)), nil)
	if err := jobs.Retry(t.Context(), pool, "settle", key, "ann"); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 1, `select count(*) from pawl.periods p join total t on t.key = p.key and t.xmin = p.xmin where p.state = 'complete' and t.n = 2`)
	if n := count(t, pool, `select count(*) from part`); n != 2 {
		t.Errorf("%d parts, want 2: shards that were complete have run again", n)
	}
}
