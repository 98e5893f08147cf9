package main

import (
	"context"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
	"pawl/jobs/schedule"
)

// ttl is short, so that a takeover takes two seconds; in production leave it at its default of 30 s.
const ttl = time.Second

// publish is [jobs.Run.Publish], or what stands in for it in a variant that is wrong.
type publish func(ctx context.Context, run *jobs.Run, name string, write func(io.Writer) error) error

// reports makes the statements.
type reports struct {
	pool    *pgxpool.Pool
	publish publish
	pace    func(ctx context.Context) error // called once in the middle of each file; nil: at full speed
	deaf    bool                            // it doesn't hear that its lease is lost
}

func fenced(ctx context.Context, run *jobs.Run, name string, write func(io.Writer) error) error {
	_, err := run.Publish(ctx, name, write)
	return err
}

// job owes a period for each month since first that is over. Each tenant is a shard: under a lock of its own, with retries
// of its own, on whatever worker is free. The next month begins when all have been published.
func (r *reports) job(first time.Time) jobs.Job {
	return jobs.Job{
		Name: "report", Schedule: "0 2 1 * *", Period: schedule.Month, PeriodOffset: -1, Start: first.Add(3 * time.Hour),
		CatchUp: schedule.CatchUpAll, CatchUpWindow: 5 * 366 * 24 * time.Hour, TTL: ttl, MaxRetries: 1000, RetryDelay: 10 * time.Millisecond,
		RetryMaxDelay: 100 * time.Millisecond, Func: r.month,
		ShardKeys: func(ctx context.Context, _ *jobs.Run) ([]string, error) { return tenants(ctx, r.pool) },
	}
}

// month publishes the statement of one tenant, the run's shard.
func (r *reports) month(ctx context.Context, run *jobs.Run) error {
	if r.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	return r.statement(ctx, run, statement{run.Shard.Key, run.Period.Key, run.Period.Start, run.Period.End})
}

// statement publishes both files of one tenant: the current statement has one name, the months before are its versions.
func (r *reports) statement(ctx context.Context, run *jobs.Run, s statement) error {
	for file, format := range map[string]func(io.Writer) sheet{csvOf(s.tenant): newCSV, pageOf(s.tenant): newPage} {
		err := r.publish(ctx, run, file, func(w io.Writer) error {
			if err := s.write(ctx, r.pool, format(w)); err != nil || r.pace == nil {
				return err
			}
			return r.pace(ctx)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func csvOf(tenant string) string  { return tenant + "/statement.csv" }
func pageOf(tenant string) string { return tenant + "/statement.html" }
