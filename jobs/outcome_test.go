package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

// became waits for the first run's end, and returns the run and the state and reason of its period.
func became(t *testing.T, pool *pgxpool.Pool) (r jobs.RunRecord, period string) {
	t.Helper()
	until(t, pool, 1, `select least(count(*), 1) from pawl.runs where ended_at is not null`)
	rs, err := jobs.NewHistory(pool).Runs(t.Context(), jobs.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	r = rs[len(rs)-1]
	err = pool.QueryRow(t.Context(), `select concat_ws(' ', state, reason) from pawl.periods where key = $1`, r.Key).Scan(&period)
	if err != nil {
		t.Fatal(err)
	}
	return r, period
}

// counted is the value of a counter.
func counted(t *testing.T, reg *prometheus.Registry, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			same := f.GetName() == name && len(m.GetLabel()) == len(labels)
			for _, l := range m.GetLabel() {
				same = same && labels[l.GetName()] == l.GetValue()
			}
			if same {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestAnErrorSaysWhatBecomesOfThePeriod(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err           error
		state, period string
	}{
		"skip":                   {fmt.Errorf("no file: %w", jobs.ErrSkip), "skipped", "skipped exit_code"},
		"no retry":               {fmt.Errorf("refused: %w", jobs.ErrNoRetry), "failed", "dead failed"},
		"uncertain":              {fmt.Errorf("cut off: %w", jobs.ErrUncertain), "failed", "dead uncertain"},
		"later":                  {&jobs.RetryError{After: time.Hour, Err: errors.New("busy")}, "failed", "open failed"},
		"drained, but nobody is": {jobs.ErrDrained, "failed", "open failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, reg := pgtest.New(t), prometheus.NewRegistry()
			start(t, jobs.Config{Pool: pool, Registerer: reg}, jobs.Job{
				Name: "x", Schedule: "0 0 * * *", Start: daysAgo(1), RetryDelay: time.Minute, RetryMaxDelay: time.Minute,
				Func: func(context.Context, *jobs.Run) error { return c.err },
			})
			r, period := became(t, pool)
			if r.State != c.state || period != c.period || r.Error != c.err.Error() {
				t.Errorf("%s %q, period %s", r.State, r.Error, period)
			}
			if count(t, pool, `select count(*) from pawl.periods where ended_at is not null`) == 1 {
				state, reason, _ := strings.Cut(period, " ")
				want := map[string]string{"job": "x", "state": state, "reason": reason}
				pgtest.Eventually(t, 10*time.Second, "it is counted", func() bool { return counted(t, reg, "pawl_periods_total", want) == 1 })
			}
		})
	}
}

func TestTheNextRunIsNotBeforeTheErrorSays(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	start(t, jobs.Config{Pool: pool}, jobs.Job{
		Name: "x", Schedule: "0 0 * * *", Start: daysAgo(1), RetryDelay: time.Second,
		Func: func(context.Context, *jobs.Run) error {
			return &jobs.RetryError{After: time.Hour, Err: errors.New("busy")}
		},
	})
	became(t, pool)
	if n := count(t, pool, `select count(*) from pawl.periods p, pawl.runs r where p.not_before - r.ended_at between '59 min' and '61 min'`); n != 1 {
		t.Error("it is tried again at another time than in an hour")
	}
}

func TestUncertaintyOutlivesTheTimeout(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	start(t, jobs.Config{Pool: pool}, jobs.Job{
		Name: "x", Schedule: "0 0 * * *", Start: daysAgo(1), Timeout: 50 * time.Millisecond,
		Func: func(ctx context.Context, _ *jobs.Run) error { <-ctx.Done(); return jobs.ErrUncertain },
	})
	if r, period := became(t, pool); r.State != "failed" || period != "dead uncertain" {
		t.Errorf("%s, period %s", r.State, period)
	}
}

// It says that it is stopping, and takes longer than others may: its slot isn't stuck, and Left tells when it would be.
func TestAFunctionThatIsStoppingHasTheJobsGrace(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	type look struct{ before, after time.Duration }
	looked := make(chan look, 1)
	_, l, _ := start(t, jobs.Config{Pool: pool, Grace: 20 * time.Second}, jobs.Job{
		Name: "x", Schedule: "0 0 * * *", Start: daysAgo(1), Timeout: 50 * time.Millisecond, Grace: 5 * time.Second, MaxRetries: jobs.NoRetries,
		Func: func(ctx context.Context, run *jobs.Run) error {
			before := run.Left()
			<-ctx.Done()
			run.Stopping()
			tick := time.NewTimer(3500 * time.Millisecond) // real clock: a slot counts as stuck after three seconds
			defer tick.Stop()
			<-tick.C
			looked <- look{before, run.Left()}
			return ctx.Err()
		},
	})
	if r, _ := became(t, pool); r.State != "timed_out" {
		t.Errorf("%s", r.State)
	}
	got := <-looked
	if got.before < 20*time.Second || got.before > 27*time.Second || got.after <= 0 || got.after > 1600*time.Millisecond {
		t.Errorf("before the end of its context %v were left, after 3.5s of its grace %v", got.before, got.after)
	}
	if l.has("stuck") {
		t.Error("its slot counted as stuck")
	}
}

func TestWhoSeesTheShutdownMayStopAtOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ready := make(chan struct{})
	_, _, stop := start(t, jobs.Config{Pool: pool, Grace: time.Minute}, jobs.Job{
		Name: "x", Schedule: "0 0 * * *", Start: daysAgo(1),
		Func: func(ctx context.Context, run *jobs.Run) error {
			close(ready)
			<-run.Draining()
			if ctx.Err() != nil {
				return errors.New("its context has ended")
			}
			return fmt.Errorf("stopped: %w", jobs.ErrDrained)
		},
	})
	<-ready
	since := time.Now()
	if err := stop(); err != nil || time.Since(since) > 20*time.Second {
		t.Fatalf("%v after %v", err, time.Since(since))
	}
	if r, period := became(t, pool); r.State != "drained" || period != "open drained" || count(t, pool, `select attempts from pawl.periods`) != 0 {
		t.Errorf("%s %q, period %s", r.State, r.Error, period)
	}
}

func TestOutputIsKeptAsItWas(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ids := make(chan uuid.UUID, 1)
	start(t, jobs.Config{Pool: pool}, jobs.Job{
		Name: "x", Schedule: "0 0 * * *", Start: daysAgo(1),
		Func: func(ctx context.Context, run *jobs.Run) error {
			ids <- run.ID
			if err := run.Keep(ctx, jobs.Output{Head: []byte("x"), Bytes: 1}); err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(ctx)
			cancel() // it is written all the same
			return run.Keep(ctx, jobs.Output{Head: []byte("a\x00\xff"), Bytes: 10})
		},
	})
	if r, _ := became(t, pool); r.State != "complete" {
		t.Fatal(r.Error)
	}
	h := jobs.NewHistory(pool)
	o, err := h.Output(t.Context(), <-ids)
	if err != nil || string(o.Head) != "a\x00\xff" || o.Tail == nil || len(o.Tail) != 0 || o.Bytes != 10 || !o.Cut() || time.Since(o.At).Abs() > time.Minute {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := h.Output(t.Context(), uuid.New()); !errors.Is(err, jobs.ErrNoOutput) {
		t.Errorf("%v", err)
	}
}
