package jobs

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// stored registers a job, checked and with its defaults, and moves its watermark to after.
func (r *Runner) stored(t *testing.T, j Job, after time.Time) Job {
	t.Helper()
	if j.Func == nil {
		j.Func = func(context.Context, *Run) error { return nil }
	}
	j, err := j.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.registerJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	exec(t, r.cfg.Pool, `update pawl.schedules set watermark = $2, next_at = $2 where job = $1 returning 1`, j.Name, after)
	return j
}

// planAt plans one job as the planner would at another time.
func (r *Runner) planAt(t *testing.T, job string, now time.Time) {
	t.Helper()
	err := pgx.BeginTxFunc(t.Context(), r.pool, stepwise(), func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), storedSQL, job)
		if err != nil {
			return err
		}
		p, err := pgx.CollectExactlyOneRow(rows, scanPlanned)
		if err != nil {
			return err
		}
		p.now = now
		return r.planRest(t.Context(), tx, p)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func utcTime(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04Z", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// texts returns one column of text.
func texts(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// said keeps what a runner says.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) logger() *slog.Logger { return slog.New(slog.NewTextHandler(s, nil)) }

func (s *said) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.b.String(), text)
}
