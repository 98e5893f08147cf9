package jobs

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
)

// A process that was stopped for ten minutes, as by SIGSTOP, finds that no pass was completed meanwhile, nor could be.
func TestAProcessThatWakesMayPlanFirst(t *testing.T) {
	t.Parallel()
	p := stillness{limit: 5 * time.Minute}
	now := time.Now()
	looks := func(n int, passes uint64) (over bool) {
		for range n {
			now = now.Add(p.every())
			over = p.over(now, passes)
		}
		return over
	}
	if looks(15, 1) {
		t.Error("over before its time")
	}
	now = now.Add(10 * time.Minute)
	if looks(1, 1) {
		t.Error("over though it has only just woken")
	}
	if looks(20, 2) || looks(18, 3) {
		t.Error("over though passes were completed")
	}
	if now = now.Add(10 * time.Minute); looks(1, 3) {
		t.Error("over though it has only just woken, again")
	}
	if !looks(3, 3) {
		t.Error("not over though it has looked on for long enough")
	}
}

func TestAPlannerThatStandsStillEndsTheRunnerUnlessTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &said{}
		r, err := New(Config{Pool: &pgxpool.Pool{}, Logger: log.logger()})
		if err != nil {
			t.Fatal(err)
		}
		r.started.Store(true)
		var away atomic.Bool
		r.answers = func(context.Context) error {
			if away.Load() {
				return errors.New("connection refused")
			}
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.watchPlanner(ctx)
		for range 60 { // it plans for an hour
			<-time.After(time.Minute) // the bubble's clock
			r.passes.Add(1)
		}
		away.Store(true)
		<-time.After(time.Hour)
		away.Store(false) // the planner is waiting for an answer that never comes, and asks anew
		<-time.After(2 * time.Minute)
		if err := r.Ready(); err != nil || len(r.failed) != 0 {
			t.Fatalf("Ready = %v after an hour without the database", err)
		}
		r.passes.Add(1)
		<-time.After(4*time.Minute + 50*time.Second)
		if len(r.failed) != 0 {
			t.Error("it has ended before its patience was over")
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if err := <-r.failed; !errors.Is(err, ErrPlannerHung) {
			t.Errorf("it ends with %v", err)
		}
		if err := r.Ready(); !errors.Is(err, ErrNotReady) {
			t.Errorf("Ready = %v", err)
		}
		if n := log.count("the runner ends"); n != 1 {
			t.Errorf("it was said %d times", n)
		}
	})
}

// standstill stops the planner at its next question, for ever.
type standstill struct {
	on      atomic.Bool
	release chan struct{}
}

func (s *standstill) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	if d.SQL == peekSQL && s.on.Load() {
		<-s.release // whatever becomes of ctx
	}
	return ctx
}

func (s *standstill) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// The planner holds a connection and heeds no context: Run ends all the same, and lets its runs finish first.
func TestARunnerWhosePlannerIsHungEnds(t *testing.T) {
	t.Parallel()
	cfg := pgtest.New(t).Config()
	s := &standstill{release: make(chan struct{})}
	cfg.ConnConfig.Tracer = s
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r, err := New(Config{Pool: pool, NoPrune: true, Grace: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r.cfg.PlanPatience = 500 * time.Millisecond
	finished := make(chan struct{})
	err = r.Add(Job{Name: "j", Schedule: "@manual", Func: func(context.Context, *Run) error {
		<-r.gone // the shutdown has begun
		close(finished)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(t.Context()) }()
	pgtest.Eventually(t, 20*time.Second, "it plans", func() bool { return r.passes.Load() > 0 })
	if _, err := Trigger(t.Context(), pool, "j", TriggerConfig{Actor: "test"}); err != nil {
		t.Fatal(err)
	}
	pgtest.Eventually(t, 20*time.Second, "it runs", func() bool { return r.live.len() == 1 })
	s.on.Store(true)
	defer close(s.release)
	select {
	case err := <-ended:
		if !errors.Is(err, ErrPlannerHung) {
			t.Errorf("Run = %v, want ErrPlannerHung", err)
		}
	case <-time.After(20 * time.Second): // real clock: a hung runner never ends
		t.Fatal("the runner is alive and does nothing")
	}
	select {
	case <-finished:
	default:
		t.Error("its run was not let finish")
	}
}

func TestThePatienceWithThePlannerHasABound(t *testing.T) {
	t.Parallel()
	var bad *ConfigError
	if _, err := New(Config{Pool: &pgxpool.Pool{}, PlanPatience: time.Second}); !errors.As(err, &bad) || bad.Field != "PlanPatience" {
		t.Errorf("New = %v", err)
	}
}
