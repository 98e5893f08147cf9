package jobfile_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/faults"
	"pawl/internal/guardian"
	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/jobs/jobfile"
)

// TestMain is also the guardian of commands, and the worker processes that tests kill.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "guardian" {
		os.Exit(guardian.Main(os.Args[2:], os.Stderr))
	}
	os.Exit(faults.Main(m, faults.Kinds{"file": stored}))
}

// stored are the jobs of the file that the database names.
func stored(ctx context.Context, pool *pgxpool.Pool) ([]jobs.Job, error) {
	var name string
	if err := pool.QueryRow(ctx, `select name from job_file`).Scan(&name); err != nil {
		return nil, err
	}
	return loaded(name, nil)
}

// loaded are the jobs of a file, as pawl serve runs them.
func loaded(name string, handlers map[string]jobs.Func) (all []jobs.Job, err error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f, issues := jobfile.Parse(name, source, os.Getenv)
	if jobfile.Worst(issues) > jobfile.Note {
		return nil, fmt.Errorf("%s", jobfile.Lines(issues))
	}
	for i := range f.Jobs {
		j, err := f.Jobs[i].Load(jobfile.Host{Guardian: []string{"pawl", "guardian"}, Handlers: handlers})
		if err != nil {
			return nil, err
		}
		all = append(all, j)
	}
	return all, nil
}

// write writes a job file in a directory of its own.
func write(t *testing.T, source string) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "pawl.yaml")
	if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// serve runs a file's jobs until the test ends or stop is called.
func serve(t *testing.T, cfg jobs.Config, name string, handlers map[string]jobs.Func) (stop func()) {
	t.Helper()
	all, err := loaded(name, handlers)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	r, err := jobs.New(cfg)
	for i := 0; err == nil && i < len(all); i++ {
		err = r.Add(all[i])
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// trigger owes a period of an @manual job once it is stored, and returns its key.
func trigger(t *testing.T, pool *pgxpool.Pool, job string) (key string) {
	t.Helper()
	until(t, pool, 1, `select count(*) from pawl.schedules where job = $1`, job)
	key, err := jobs.Trigger(t.Context(), pool, job, jobs.TriggerConfig{Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func count(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func until(t *testing.T, pool *pgxpool.Pool, want int, sql string, args ...any) {
	t.Helper()
	pgtest.Eventually(t, 60*time.Second, sql, func() bool { return count(t, pool, sql, args...) == want })
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// lines are those of a file that commands write.
func lines(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}
