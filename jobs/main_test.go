package jobs_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/faults"
	"pawl/jobs"
)

// TestMain is also the entry of the worker processes that tests kill and stop.
func TestMain(m *testing.M) {
	if os.Getenv(dieEnv) != "" {
		if err := die(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(faults.Main(m, faults.Kinds{
		"ledger": faults.Ledgers,
		"poison": func(context.Context, *pgxpool.Pool) ([]jobs.Job, error) { return []jobs.Job{poison()}, nil },
	}))
}
