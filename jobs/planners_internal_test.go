package jobs

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs/schedule"
)

var planFor = flag.Duration("planners", 5*time.Second, "for how long fifty replicas plan")

// counted counts the statements that planners send.
type counted struct{ peeks, others atomic.Int64 }

func (c *counted) add(sql string) {
	if sql == peekSQL {
		c.peeks.Add(1)
	} else {
		c.others.Add(1)
	}
}

func (c *counted) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	c.add(d.SQL)
	return ctx
}
func (*counted) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *counted) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (c *counted) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	c.add(d.SQL)
}
func (*counted) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// planner is a replica that only plans, with connections of its own.
func planner(t *testing.T, url string, c *counted) *Runner {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns, cfg.ConnConfig.Tracer = 2, c
	cfg.ConnConfig.RuntimeParams["plan_cache_mode"], cfg.ConnConfig.RuntimeParams["enable_seqscan"] = "force_generic_plan", "off"
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r, err := New(Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	r.pool = pool
	return r
}

// TestFiftyReplicasPlanEachTickOnce lets 50 replicas plan 500 schedules while some are killed in the middle of a transaction
// and others stall with schedules in hand. What they send grows with the ticks, not with replicas and schedules: a replica
// that finds nothing due sends one statement a second.
func TestFiftyReplicasPlanEachTickOnce(t *testing.T) {
	const replicas, schedules = 50, 500
	url := pgtest.URL(t)
	pool := pgtest.Open(t, url)
	from := storeSchedules(t, pool, schedules)
	var c counted
	var killed, failed atomic.Int64
	ctx, stop := context.WithTimeout(t.Context(), *planFor)
	defer stop()
	var wg sync.WaitGroup
	for range replicas {
		r := planner(t, url, &c)
		wg.Go(func() {
			for again := rand.N(planEvery); wait(ctx, again, nil); again = jitter(planEvery) {
				life := time.Minute
				if rand.IntN(5) == 0 { // killed, wherever it is
					life = rand.N(8 * time.Millisecond)
				}
				turn, cancel := context.WithTimeout(context.WithoutCancel(ctx), life)
				if err := r.plan(turn); err != nil {
					if turn.Err() != nil {
						killed.Add(1)
					} else {
						failed.Add(1)
					}
				}
				cancel()
			}
		})
	}
	wg.Go(func() { stall(ctx, pool) })
	wg.Wait()
	r := planner(t, url, &counted{})
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	ticks := checkTicks(t, pool, from)
	t.Logf("%d replicas, %d schedules, %s: %d ticks, %d peeks, %d other statements (%.1f a tick), %d killed, %d failed",
		replicas, schedules, *planFor, ticks, c.peeks.Load(), c.others.Load(), float64(c.others.Load())/float64(ticks), killed.Load(), failed.Load())
	if n := c.others.Load(); n > 6*ticks+c.peeks.Load() { // a short test begins with 50 connections
		t.Errorf("%d statements for %d ticks", n, ticks)
	}
	if most := int64(float64(replicas)*planFor.Seconds()/0.8) + 2*ticks; c.peeks.Load() > most {
		t.Errorf("%d peeks, want at most %d", c.peeks.Load(), most)
	}
	if killed.Load() == 0 {
		t.Error("no planner was killed")
	}
}

// storeSchedules stores jobs that tick every 20 to 60 s, each at seconds of its own.
func storeSchedules(t *testing.T, pool *pgxpool.Pool, n int) (from time.Time) {
	t.Helper()
	r, err := New(Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	r.pool = pool
	if err := pool.QueryRow(t.Context(), `select date_trunc('second', clock_timestamp())`).Scan(&from); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		every := time.Duration(20+i%41) * time.Second
		j, err := Job{
			Name: fmt.Sprintf("job%d", i), Schedule: "@every " + every.String(), EveryOffset: time.Duration(i) % (every / time.Second) * time.Second,
			Period: schedule.PerTick, CatchUp: schedule.CatchUpAll, Start: from, Func: func(context.Context, *Run) error { return nil },
		}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.registerJob(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	return from
}

// stall is a replica that stops now and then with schedules in hand.
func stall(ctx context.Context, pool *pgxpool.Pool) {
	for wait(ctx, rand.N(time.Second), nil) {
		_, _ = pool.Exec(ctx, `with held as materialized (select job from pawl.schedules where hashtext(job) % 7 = $1 order by job for update skip locked)
			select pg_sleep($2) from (select count(*) from held) n`, rand.IntN(7), rand.Float64()*2)
	}
}

// checkTicks compares the rows of each job with what its schedule says, tick by tick, and returns their number.
func checkTicks(t *testing.T, pool *pgxpool.Pool, from time.Time) (total int64) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `select `+plannedColumns+` from pawl.schedules`)
	if err != nil {
		t.Fatal(err)
	}
	ps, err := pgx.CollectRows(rows, scanPlanned)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ps {
		s, err := p.parse()
		if err != nil {
			t.Fatal(err)
		}
		if next := s.Next(p.watermark); p.now.Sub(next) > 10*time.Second {
			t.Errorf("%s is planned up to %s only, and has a tick at %s", p.Job, p.watermark, next)
		}
		var want []string
		for at := s.Next(from); !at.After(p.watermark); at = s.Next(at) {
			want = append(want, s.Period(at).Key)
		}
		got := texts(t, pool, `select key from pawl.periods where job = $1 and state = 'open' and ticks = 1 order by scheduled_at`, p.Job)
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %d rows, want %d: got %q, want %q", p.Job, len(got), len(want), got, want)
		}
		total += int64(len(want))
	}
	return total
}
