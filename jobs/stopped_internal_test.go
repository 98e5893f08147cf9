package jobs

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
)

// stopper stops whoever is about to commit.
type stopper struct {
	once    sync.Once
	reached chan struct{}
	release chan struct{}
}

func (s *stopper) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	if strings.EqualFold(d.SQL, "commit") {
		s.once.Do(func() { close(s.reached); <-s.release })
	}
	return ctx
}

func (s *stopper) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A planner that is stopped, or loses its network, in the middle of its transaction holds the lanes of all it plans.
func TestAPlannerThatStopsInsideItsTransactionGivesTheLanesUp(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	cfg := pool.Config()
	s := &stopper{reached: make(chan struct{}), release: make(chan struct{})}
	cfg.ConnConfig.Tracer = s
	traced, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(traced.Close)
	r, err := New(Config{Pool: traced})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.shut)
	if _, err := pool.Exec(t.Context(), `insert into pawl.schedules (job, app, lock, definition, watermark, next_at)
	  values ('j', 'default', 'L', '{"schedule": "@daily", "runs": 1}', now() - interval '3 days', now() - interval '2 days')`); err != nil {
		t.Fatal(err)
	}
	planned := make(chan error, 1)
	go func() { planned <- r.plan(context.Background()) }()
	<-s.reached
	defer func() {
		close(s.release)
		if err := <-planned; err == nil {
			t.Error("the planner that stood still has committed")
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := pool.Exec(ctx, enterSQL); err != nil {
		t.Errorf("enter the lane = %v: it is held as long as the planner stands still", err)
	}
}
