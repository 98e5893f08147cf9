package jobs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
)

var chaosFor = flag.Duration("chaos", 3*time.Second, "how long the storm over the lanes lasts; fair weather before it lasts two thirds of that")

const (
	chaosTTL = 300 * time.Millisecond

	chaosSQL = `
create table w (lock text, token bigint);
create table ends (job text, key text);
create function ended() returns trigger language plpgsql as $$ begin insert into ends values (new.job, new.key); return null; end $$;
create trigger ended after update on pawl.periods for each row when (new.state = 'complete' and old.state <> 'complete') execute function ended()`

	// The lane rule, asked of one snapshot: locks that break it.
	chaosRuleSQL = `
select count(distinct p.lock) from pawl.periods p where p.ended_at is null and p.state = 'open'
   and not exists (select from pawl.runs r where r.lock = p.lock and r.ended_at is null)
   and not exists (select from pawl.lanes n join pawl.river_job j on j.id = n.delivery where n.lock = p.lock and j.state in ('available', 'running'))`

	chaosOrderSQL = `
select count(*) from (select token, max(token) over (partition by lock order by pg_xact_commit_timestamp(xmin), token
  rows between unbounded preceding and 1 preceding) m from w) x where token < m`
)

// weather is what planners, workers, sweeps, operators and River's page do to the lanes, by the runner's own statements.
type weather struct {
	t                    *testing.T
	r                    *Runner
	pool                 *pgxpool.Pool
	seed                 uint64
	stop, planned, storm atomic.Bool
	locks                atomic.Int64
	wg                   sync.WaitGroup
	mu                   sync.Mutex
	broken               []string
	n                    [len(chaosCounts)]atomic.Int64
}

const (
	nPlanned = iota
	nCompleted
	nHandedOver
	nFailed
	nKilled
	nPaused
	nForced
	nRefused
	nPages
	nBusy
)

var chaosCounts = [...]string{"planned", "completed", "handed over", "failed", "killed", "paused", "forced", "refused", "acts of River's page", "busy"}

func TestTheLanesDrainAfterAStorm(t *testing.T) {
	t.Parallel()
	w := newWeather(t)
	w.fair(*chaosFor * 2 / 3)
	w.rain(*chaosFor, true)
	if left := w.drain(); left != 0 {
		t.Errorf("%d periods never end", left)
	}
	w.judge()
}

// The test above must be able to fail: without the backstop what died between fetch and start stays where it is.
func TestWithoutTheBackstopAStormStrandsPeriods(t *testing.T) {
	t.Parallel()
	for range 5 { // now and then a storm happens to leave nothing behind
		w := newWeather(t)
		w.rain(*chaosFor, false)
		left := w.drain()
		t.Logf("%d periods are stranded", left)
		w.judge()
		if left > 0 {
			return
		}
	}
	t.Error("nothing is ever stranded: the storms prove nothing about the backstop")
}

func newWeather(t *testing.T) *weather {
	t.Helper()
	pool := pgtest.New(t)
	for _, sql := range []string{chaosSQL, `do $$ begin execute format('alter database %I set pawl.start_grace = %L', current_database(), '300 ms'); end $$`} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	pool.Reset() // the setting is for new connections
	r, err := New(Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	r.jobs["j"] = Job{Name: "j", TTL: chaosTTL, Func: func(context.Context, *Run) error { return nil }}
	r.names, r.ttls = []string{"j"}, []int64{chaosTTL.Milliseconds()}
	if _, err := r.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.shut)
	w := &weather{t: t, r: r, pool: pool, seed: uint64(time.Now().UnixNano())}
	t.Logf("seed %d", w.seed)
	w.locks.Store(40)
	for p := range 3 {
		w.loop(&w.planned, 12, func(x *rand.Rand) { w.plan(x, p) })
	}
	for range 8 {
		w.loop(&w.stop, 3, w.work)
	}
	w.loop(&w.planned, 20, w.operate)
	return w
}

// broke notes a violation.
func (w *weather) broke(format string, a ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.broken) < 5 {
		w.broken = append(w.broken, fmt.Sprintf(format, a...))
	}
}

// odd notes an error that no fault explains.
func (w *weather) odd(what string, err error) bool {
	var pg *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, fence.ErrStale), errors.Is(err, fence.ErrNotHeld), errors.Is(err, fence.ErrUnknown), errors.Is(err, pgx.ErrTxCommitRollback):
	case errors.As(err, &pg) && (pg.Code == "57P01" || pg.Code == "25P03" || pg.Code == "55P03"): // terminated, idle, or waited long enough
	case !errors.As(err, &pg): // the connection
	default:
		w.broke("%s: %v", what, err)
	}
	return err != nil
}

// loop does f again and again, at random distances.
func (w *weather) loop(until *atomic.Bool, pause int, f func(x *rand.Rand)) {
	w.seed++
	x := rand.New(rand.NewPCG(w.seed, 0))
	w.wg.Go(func() {
		for !until.Load() {
			f(x)
			w.pass(time.Duration(x.IntN(2*pause+1)) * time.Millisecond)
		}
	})
}

// pass lets real time go by: the database has no other.
func (w *weather) pass(d time.Duration) { <-time.After(d) }

// fair weather has no faults, no sweep and no backstop: the rule must hold in every snapshot.
func (w *weather) fair(d time.Duration) {
	w.t.Helper()
	for since := time.Now(); time.Since(since) < d; w.pass(4 * time.Millisecond) {
		if n := count(w.t, w.pool, chaosRuleSQL); n != 0 {
			w.broke("fair weather: the lane rule is broken for %d locks after %s", n, time.Since(since))
			return
		}
	}
}

// rain is the storm. It goes on for a while after the planners have stopped, whose advance heals what is stranded, and have
// left a backlog.
func (w *weather) rain(d time.Duration, backstop bool) {
	w.t.Helper()
	w.locks.Store(4)
	w.storm.Store(true)
	for range 2 {
		w.loop(&w.stop, 40, func(*rand.Rand) { w.recover(backstop) })
	}
	w.loop(&w.stop, 40, w.page)
	for since := time.Now(); time.Since(since) < d && len(w.violations()) == 0; w.pass(50 * time.Millisecond) {
		w.order()
	}
	w.planned.Store(true)
	w.pass(200 * time.Millisecond)
	var last []periodRow
	for range 160 {
		w.add(&last, "last", rand.Int64N(4))
	}
	w.step("plan", func(tx pgx.Tx) error { return owe(tx, last) })
	if _, err := w.pool.Exec(w.t.Context(), `update pawl.periods set state = 'skipped', ended_at = clock_timestamp() where state = 'held'`); err != nil {
		w.t.Error(err)
	}
	w.pass(1500 * time.Millisecond)
	w.storm.Store(false)
}

func (w *weather) violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken
}

// order: no lower token commits after a higher one.
func (w *weather) order() {
	w.t.Helper()
	if n := count(w.t, w.pool, chaosOrderSQL); n != 0 {
		w.broke("%d writes committed after one with a higher token", n)
	}
}

// drain waits until nothing is owed, or no more gets done, and says how much is left. Slow is not stuck.
func (w *weather) drain() (left int) {
	w.t.Helper()
	left = -1
	for since := time.Now(); time.Since(since) < 5*time.Second && left != 0 && len(w.violations()) == 0; w.pass(50 * time.Millisecond) {
		if n := count(w.t, w.pool, `select count(*) from pawl.periods where ended_at is null`); n != left {
			left, since = n, time.Now()
		}
	}
	w.stop.Store(true)
	w.wg.Wait()
	return left
}

func (w *weather) judge() {
	w.t.Helper()
	w.order()
	if n := count(w.t, w.pool, `select count(*) from (select from ends group by job, key having count(*) > 1) x`); n != 0 {
		w.broke("%d periods ended twice", n)
	}
	var seen []string
	for i, name := range chaosCounts {
		n := w.n[i].Load()
		seen = append(seen, fmt.Sprintf("%s %d", name, n))
		if n == 0 && len(w.broken) == 0 {
			w.t.Errorf("inconclusive: nothing was %s", name)
		}
	}
	w.t.Log(strings.Join(seen, ", "))
	for _, s := range w.broken {
		w.t.Error(s)
	}
}

func count(t *testing.T, pool *pgxpool.Pool, sql string) int {
	t.Helper()
	return int(exec(t, pool, sql))
}
