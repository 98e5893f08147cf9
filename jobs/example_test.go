package jobs_test

import (
	"context"
	"log"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
)

// A day's invoices in batches: a successor goes on after the last batch that was committed.
func settleDay(ctx context.Context, run *jobs.Run) error {
	var last int64 // the invoice up to which everything is settled
	if _, err := run.Resume(&last); err != nil {
		return err
	}
	for more := true; more; {
		err := run.Tx(ctx, func(tx pgx.Tx) (err error) {
			before := last
			err = tx.QueryRow(ctx, `select coalesce(max(settle_invoice(id)), $1) from next_invoices($1, $2, 1000) id`,
				last, run.Period.Key).Scan(&last)
			if more = last > before; err != nil || !more {
				return err
			}
			return run.Checkpoint(ctx, tx, last)
		})
		if err != nil {
			return err
		}
	}
	return run.Complete(ctx, func(tx pgx.Tx) error { // the result, the marker and the release: one commit
		_, err := tx.Exec(ctx, `insert into settled (day, token) values ($1, $2)`, run.Period.Key, run.Token().Seq)
		return err
	})
}

func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://localhost/shop")
	if err != nil {
		log.Fatal(err)
	}
	runner, err := jobs.New(jobs.Config{Pool: pool, Logger: slog.Default()})
	if err != nil {
		log.Fatal(err)
	}
	err = runner.Add(jobs.Job{
		Name: "settle", Schedule: "15 2 * * *", Timezone: "Europe/Berlin", PeriodOffset: -1, // at 02:15, for the day before
		TTL: 30 * time.Second, Timeout: time.Hour, MaxRetries: 5, Func: settleDay,
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := runner.Run(ctx); err != nil { // until ctx ends, then it drains
		log.Fatal(err)
	}
}
