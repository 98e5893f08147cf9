package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
	"pawl/jobs/schedule"
)

// ttl is short, so that a takeover takes two seconds; in production leave it at its default of 30 s.
const ttl = time.Second

// batches is how many jobs share the tenants, each under a lock of its own.
const batches = 5

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

// jobs owe a period for each month since first that is over. Each has a part of the tenants.
func (r *reports) jobs(all []string, first time.Time) []jobs.Job {
	var out []jobs.Job
	for i, part := range parts(all) {
		out = append(out, jobs.Job{
			Name: fmt.Sprintf("report-%d", i), Schedule: "0 2 1 * *", Period: schedule.Month, PeriodOffset: -1, Start: first.Add(3 * time.Hour),
			CatchUp: schedule.CatchUpAll, CatchUpWindow: 5 * 366 * 24 * time.Hour, TTL: ttl, MaxRetries: 1000, RetryDelay: 10 * time.Millisecond,
			RetryMaxDelay: 100 * time.Millisecond,
			Func:          func(ctx context.Context, run *jobs.Run) error { return r.month(ctx, run, part) },
		})
	}
	return out
}

// parts shares the tenants out.
func parts(all []string) [][]string {
	return slices.Collect(slices.Chunk(all, (len(all)+batches-1)/batches))
}

// month publishes the statements of some tenants. A successor goes on with the tenant that its predecessor was at.
func (r *reports) month(ctx context.Context, run *jobs.Run, tenants []string) error {
	if r.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	done := 0
	if _, err := run.Resume(&done); err != nil {
		return err
	}
	for ; done < len(tenants); done++ {
		run.Progress(int64(done), int64(len(tenants)))
		s := statement{tenants[done], run.Period.Key, run.Period.Start, run.Period.End}
		if err := r.statement(ctx, run, s); err != nil {
			return err
		}
		if err := run.Tx(ctx, func(tx pgx.Tx) error { return run.Checkpoint(ctx, tx, done+1) }); err != nil {
			return err
		}
	}
	return nil
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
