package lockrepo

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
)

// A statement too has an end, not only the wait for a connection: else what has no deadline waits for ever for a server that
// says nothing.
func TestAStatementWithoutADeadlineGetsOne(t *testing.T) {
	t.Parallel()
	r := newRepo(t, pgtest.New(t), "r")
	until := func(ctx context.Context) (at time.Time, own bool) {
		err := r.on(ctx, func(ctx context.Context, _ *pgx.Conn, _ bool) error {
			at, own = ctx.Deadline()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return at, own
	}
	start := time.Now()
	if at, ok := until(context.Background()); !ok || at.Sub(start) > callTimeout+time.Second {
		t.Errorf("ends %v later: %t", at.Sub(start), ok)
	}
	own, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if at, _ := until(own); at.Sub(start) < 59*time.Minute {
		t.Errorf("its own deadline became one of %v", at.Sub(start))
	}
	blocked, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer stop()
	if err := r.ask(blocked, query{`select pg_sleep(60)::text`, nil, single(new(string))}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
