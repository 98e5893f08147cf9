package jobs_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgdev"
	"pawl/internal/pgtest"
	"pawl/jobs"
)

// dieEnv makes this test binary a worker that dies after so many statements.
const dieEnv = "PAWL_TEST_DIES_AFTER"

// dying ends the process when the last statement is answered: nothing is cleaned up. It counts from its first run's start.
type dying struct {
	left    atomic.Int64
	started atomic.Bool
}

func (d *dying) one() {
	if d.started.Load() && d.left.Add(-1) == 0 {
		os.Exit(137)
	}
}

func (d *dying) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, "pawl.start(") {
		d.started.Store(true)
	}
	return ctx
}
func (d *dying) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) { d.one() }
func (d *dying) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (d *dying) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) { d.one() }
func (d *dying) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// die works until it dies.
func die() error {
	after, err := strconv.ParseInt(os.Getenv(dieEnv), 10, 64)
	if err != nil {
		return err
	}
	cfg, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	d := &dying{}
	d.left.Store(max(after, -after))
	d.started.Store(after < 0) // from the first statement of all
	time.AfterFunc(5*time.Second, func() { os.Exit(137) })
	cfg.ConnConfig.Tracer = d
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		return err
	}
	r, err := jobs.New(jobs.Config{Pool: pool, Concurrency: 4, NoPrune: true})
	if err != nil {
		return err
	}
	for _, j := range mortal() {
		if err := r.Add(j); err != nil {
			return err
		}
	}
	return r.Run(context.Background())
}

const (
	mortalJobs, mortalDays = 8, 30
	deaths, atOnce         = 24, 4 // before the first run, and as many from there on
)

// mortal are jobs that note what they have done in the transaction of their completion.
func mortal() (js []jobs.Job) {
	for i := range mortalJobs {
		js = append(js, jobs.Job{
			Name: fmt.Sprintf("mortal%d", i), Schedule: "@daily", Start: daysAgo(mortalDays), TTL: time.Second, MaxRetries: 200, CatchUpWindow: 100 * 24 * time.Hour,
			RetryDelay: time.Millisecond, RetryMaxDelay: time.Millisecond,
			Func: func(ctx context.Context, run *jobs.Run) error {
				return run.Complete(ctx, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, `insert into done values ($1, $2)`, run.Job, run.Period.Key)
					return err
				})
			},
		})
	}
	return js
}

// A process dies after its first statement, another after its second, and so on, and the same from its first run on: whatever is left behind, each run ends and
// each period is complete once.
func TestAProcessMayDieAfterAnyOfItsStatements(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := pgtest.Open(t, url)
	if _, err := pool.Exec(t.Context(), `create table done (job text, key text)`); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for first := -deaths; first < deaths; first += atOnce {
		var wave []*pgdev.Process
		for after := first; after < first+atOnce; after++ {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), dieEnv+"="+strconv.Itoa(cmp.Or(after, deaths)), "DATABASE_URL="+url)
			p, err := pgdev.Spawn(cmd, syscall.SIGKILL)
			if err != nil {
				t.Fatal(err)
			}
			wave = append(wave, p)
		}
		for _, p := range wave {
			<-p.Done()
		}
	}
	lost := count(t, pool, `select count(*) from pawl.runs where state in ('lost', 'running')`)
	start(t, jobs.Config{Pool: pool}, mortal()...)
	until(t, pool, mortalJobs*mortalDays, `select count(*) from pawl.periods where state = 'complete' and job like 'mortal%'`)
	until(t, pool, 0, `select count(*) from pawl.runs where ended_at is null`)
	if n := count(t, pool, `select count(*) from done`); n != mortalJobs*mortalDays {
		t.Errorf("%d periods' work was done, want each once: %d", n, mortalJobs*mortalDays)
	}
	if n := count(t, pool, `select count(*) from (select from done group by job, key having count(*) > 1) x`); n != 0 {
		t.Errorf("%d periods were done twice", n)
	}
	t.Logf("%d runs were left behind by %d deaths", lost, 2*deaths)
	if lost < deaths/4 {
		t.Error("no process died inside a run: is it the wrong range of statements?")
	}
}

// An old snapshot, or a transaction that is open as long as a run, keeps the server from clearing dead rows away.
func TestNoTransactionIsOpenWhileAFunctionRuns(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	begun, goOn := make(chan struct{}), make(chan struct{})
	start(t, jobs.Config{Pool: pool}, jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(1), TTL: time.Second, Func: func(context.Context, *jobs.Run) error {
		close(begun)
		<-goOn
		return nil
	}})
	<-begun
	until(t, pool, 1, `select count(*) from pawl.locks where name = 'job:settle' and beats > 1`)
	// Beats, planners and sweeps come and go: none of their transactions is as old as the run.
	const old = `select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend'
		and xact_start < (select started_at + interval '100 ms' from pawl.runs)`
	until(t, pool, 0, old)
	close(goOn)
	until(t, pool, 1, completeSQL, "settle")
}
