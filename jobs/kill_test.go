package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
	"pawl/jobs"
)

const (
	ledgerJobs    = 4
	ledgerPeriods = 50 // of each
	ledgerBatches = 3  // of each period
	killTTL       = time.Second
)

const ledgerSQL = `
create table witness (lock text, key text, batch int, token bigint);
create table ledger (job text, key text, sum bigint not null, last_token bigint not null, primary key (job, key));
create table done (job text, key text);
create table pace as select 0.15::float8 as pause;`

// ledgers are jobs that write in batches and don't listen to their context: only the fence stops an old holder.
func ledgers(pool *pgxpool.Pool) (js []jobs.Job) {
	for i := range ledgerJobs {
		js = append(js, jobs.Job{
			Name: fmt.Sprintf("ledger-%d", i), Schedule: "@every 1h", Start: time.Now().Truncate(time.Hour).Add(-ledgerPeriods * time.Hour),
			CatchUp: "all", CatchUpWindow: 1000 * time.Hour, TTL: killTTL, MaxRetries: 1000, RetryDelay: time.Millisecond,
			RetryMaxDelay: time.Millisecond, Func: func(_ context.Context, run *jobs.Run) error { return settle(run, pool) },
		})
	}
	return js
}

func settle(run *jobs.Run, pool *pgxpool.Pool) error {
	ctx := context.Background()
	var batch int
	if _, err := run.Resume(&batch); err != nil {
		return err
	}
	for batch < ledgerBatches {
		batch++
		if _, err := pool.Exec(ctx, `select pg_sleep(pause) from pace`); err != nil && run.Token().Seq == 0 {
			return err // a terminated backend is only a pause
		}
		if err := run.Tx(ctx, func(tx pgx.Tx) error { return writeBatch(ctx, run, tx, batch) }); err != nil {
			return errors.Join(err, insist(ctx, run, pool))
		}
	}
	return run.Complete(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into done values ($1, $2)`, run.Job, run.Period.Key)
		return err
	})
}

// insist is an old holder that goes past the run's own check and tries the database itself.
func insist(ctx context.Context, run *jobs.Run, pool *pgxpool.Pool) error {
	return fence.Do(ctx, pool, run.Token(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into witness values ($1, $2, 0, $3)`, run.Token().Lock, run.Period.Key, run.Token().Seq)
		return err
	})
}

func writeBatch(ctx context.Context, run *jobs.Run, tx pgx.Tx, batch int) error {
	if _, err := tx.Exec(ctx, `insert into witness values ($1, $2, $3, $4)`, run.Token().Lock, run.Period.Key, batch, run.Token().Seq); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `insert into ledger as l values ($1, $2, $3, $4) on conflict (job, key) do update
		set sum = l.sum + excluded.sum, last_token = excluded.last_token where l.last_token <= excluded.last_token`,
		run.Job, run.Period.Key, batch, run.Token().Seq)
	if err != nil || tag.RowsAffected() != 1 {
		return fmt.Errorf("ledger: %d rows: %w", tag.RowsAffected(), err)
	}
	return run.Checkpoint(ctx, tx, batch)
}

// outOfOrderSQL counts writes that committed after one with a higher token.
const outOfOrderSQL = `
select count(*) from (
  select token, max(token) over (partition by lock order by pg_xact_commit_timestamp(xmin), token rows between unbounded preceding and 1 preceding) as before
    from witness) x where token < before`

// Three workers are killed, stopped past their leases and cut off, and yet each period is complete exactly once.
func TestKilledStoppedAndCutOffWorkersCompleteEachPeriodOnceInTokenOrder(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := pgtest.Open(t, url)
	if _, err := pool.Exec(t.Context(), ledgerSQL); err != nil {
		t.Fatal(err)
	}
	const owed = ledgerJobs * ledgerPeriods
	storm(t, url, pool, owed)

	until(t, pool, owed, `select count(*) from pawl.periods where state = 'complete'`)
	for what, sql := range map[string]string{
		"periods that are not complete":     `select count(*) from pawl.periods where state <> 'complete' and scheduled_at < now()`,
		"periods with two completions":      `select count(*) from (select from done group by job, key having count(*) > 1) x`,
		"periods without a completion":      `select count(*) from pawl.periods p where not exists (select from done d where d.job = p.job and d.key = p.key)`,
		"ledger rows with a wrong sum":      `select count(*) from ledger where sum <> 6`,
		"batches written twice":             `select count(*) from (select from witness where batch > 0 group by lock, key, batch having count(*) > 1) x`,
		"writes after a higher token":       outOfOrderSQL,
		"runs that are complete and twice":  `select count(*) from (select from pawl.runs where state = 'complete' group by job, key having count(*) > 1) x`,
		"leases of one lock that overlap":   `select count(*) from pawl.tenures a join pawl.tenures b on a.lock = b.lock and a.token < b.token and a.ended_at > b.acquired_at`,
		"runs without a tenure":             `select count(*) from pawl.runs r where r.ended_at is not null and not exists (select from pawl.tenures t where t.grant_id = r.id)`,
		"ledger rows missing":               `select ` + fmt.Sprint(owed) + ` - count(*) from ledger`,
		"witness rows with an unknown lock": `select count(*) from witness w where not exists (select from pawl.tenures t where t.lock = w.lock and t.token = w.token)`,
	} {
		if n := count(t, pool, sql); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	takeovers := count(t, pool, `select count(*) from pawl.tenures where how = 'taken_over'`)
	refusals := count(t, pool, `select count(*) from pawl.refusals`)
	t.Logf("takeovers %d, refusals %d, runs %d", takeovers, refusals, count(t, pool, `select count(*) from pawl.runs`))
	if takeovers < 10 || refusals == 0 {
		t.Errorf("inconclusive: %d takeovers and %d refusals", takeovers, refusals)
	}
	// The check itself must be able to fail.
	if _, err := pool.Exec(t.Context(), `insert into witness select lock, 'x', 0, min(token) - 1 from witness group by lock limit 1`); err != nil {
		t.Fatal(err)
	}
	if n := count(t, pool, outOfOrderSQL); n != 1 {
		t.Errorf("the deliberate violation is counted %d times, want once", n)
	}
}

// conclusive: enough has gone wrong for the test to say something.
func conclusive(t *testing.T, pool *pgxpool.Pool) bool {
	t.Helper()
	return count(t, pool, `select count(*) from pawl.tenures where how = 'taken_over'`) >= 14 && count(t, pool, `select count(*) from pawl.refusals`) >= 3
}

// storm runs three workers and lets faults rain until all is done.
func storm(t *testing.T, url string, pool *pgxpool.Pool, owed int) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	workers := []*worker{spawn(t, "ledger", url), spawn(t, "ledger", url), spawn(t, "ledger", url)}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline, next := time.Now().Add(3*time.Minute), time.Now().Add(time.Second)
	woken := map[int]time.Time{}
	for count(t, pool, `select count(*) from pawl.periods where state = 'complete'`) < owed {
		<-tick.C
		for i, at := range woken {
			if time.Now().After(at) {
				workers[i].signal(t, syscall.SIGCONT)
				delete(woken, i)
			}
		}
		if conclusive(t, pool) { // from now on the work may get done
			if _, err := pool.Exec(t.Context(), `update pace set pause = 0.02 where pause > 0.02`); err != nil {
				t.Log(err)
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the periods are not complete after three minutes")
		}
		if time.Now().Before(next) {
			continue
		}
		next = time.Now().Add(time.Duration(100+r.IntN(200)) * time.Millisecond)
		i := r.IntN(len(workers))
		switch _, stopped := woken[i]; {
		case r.IntN(3) == 0:
			if _, err := pool.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
				where datname = current_database() and pid <> pg_backend_pid() and application_name <> '' order by random() limit 1`); err != nil {
				t.Log(err)
			}
		case stopped || len(woken) > 0:
		case r.IntN(2) == 0:
			workers[i].signal(t, syscall.SIGSTOP)
			woken[i] = time.Now().Add(killTTL + time.Duration(500+r.IntN(700))*time.Millisecond)
		default:
			workers[i].kill()
			workers[i] = spawn(t, "ledger", url)
		}
	}
	for i := range woken {
		workers[i].signal(t, syscall.SIGCONT)
	}
}
