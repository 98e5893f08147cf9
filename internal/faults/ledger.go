package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/jobs"
)

const (
	batches = 3 // of each period; they write 1 + 2 + 3
	// TTL is that of the ledger's leases.
	TTL = time.Second
)

// Ledger is the work: some jobs that owe some periods each.
type Ledger struct{ Jobs, Periods int }

// Owed is how many periods there are.
func (l Ledger) Owed() int { return l.Jobs * l.Periods }

const ledgerSQL = `
create table witness (lock text, key text, batch int, token bigint);
create table ledger (job text, key text, sum bigint not null, last_token bigint not null, primary key (job, key));
create table done (job text, key text);`

// The workers read what is owed from here, so that they all owe the same.
const paceSQL = `
create table pace as select $1::float8 as pause, $2::int as jobs, $3::int as periods, date_trunc('day', now(), 'UTC') + interval '1 h' - $3::int * interval '1 day' as start`

// Create makes the ledger's tables. Each batch waits for pause before it writes; see [Ledger.Pace].
func (l Ledger) Create(ctx context.Context, pool *pgxpool.Pool, pause time.Duration) error {
	if _, err := pool.Exec(ctx, ledgerSQL); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, paceSQL, pause.Seconds(), l.Jobs, l.Periods)
	return err
}

// Pace changes how long each batch waits.
func (l Ledger) Pace(ctx context.Context, pool *pgxpool.Pool, pause time.Duration) error {
	_, err := pool.Exec(ctx, `update pace set pause = $1 where pause <> $1`, pause.Seconds())
	return err
}

// Ledgers are the jobs of the ledger that was created in the pool's database. They don't listen to their context: only
// the fence stops an old holder.
func Ledgers(ctx context.Context, pool *pgxpool.Pool) (js []jobs.Job, err error) {
	var l Ledger
	var start time.Time
	if err := pool.QueryRow(ctx, `select jobs, periods, start from pace`).Scan(&l.Jobs, &l.Periods, &start); err != nil {
		return nil, err
	}
	for i := range l.Jobs {
		js = append(js, jobs.Job{
			Name: fmt.Sprintf("ledger-%d", i), Schedule: "@daily", Start: start.UTC(), CatchUp: "all",
			CatchUpWindow: time.Duration(l.Periods+10) * 24 * time.Hour, TTL: TTL, MaxRetries: 1000, RetryDelay: time.Millisecond,
			RetryMaxDelay: time.Millisecond, Func: func(_ context.Context, run *jobs.Run) error { return settle(run, pool) }, //nolint:contextcheck // it doesn't listen
		})
	}
	return js, nil
}

func settle(run *jobs.Run, pool *pgxpool.Pool) error {
	ctx := context.Background()
	var batch int
	if _, err := run.Resume(&batch); err != nil {
		return err
	}
	for batch < batches {
		batch++
		_, _ = pool.Exec(ctx, `select pg_sleep(pause) from pace`) // without an answer it is only a shorter pause
		if err := run.Tx(ctx, func(tx pgx.Tx) error { return writeBatch(ctx, run, tx, batch) }); err != nil {
			return errors.Join(err, insist(ctx, run, pool))
		}
	}
	return run.Complete(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into done values ($1, $2)`, run.Job, run.Period.Key)
		return err
	})
}

// insist is an old holder that goes past the run's own check and tries the database itself.
func insist(ctx context.Context, run *jobs.Run, pool *pgxpool.Pool) error {
	return fence.Do(ctx, pool, run.Token(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into witness values ($1, $2, 0, $3)`, run.Token().Lock, run.Period.Key, run.Token().Seq)
		return err
	})
}

func writeBatch(ctx context.Context, run *jobs.Run, tx pgx.Tx, batch int) error {
	if _, err := tx.Exec(ctx, `insert into witness values ($1, $2, $3, $4)`, run.Token().Lock, run.Period.Key, batch, run.Token().Seq); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `insert into ledger as l values ($1, $2, $3, $4) on conflict (job, key) do update
		set sum = l.sum + excluded.sum, last_token = excluded.last_token where l.last_token <= excluded.last_token`,
		run.Job, run.Period.Key, batch, run.Token().Seq)
	if err != nil || tag.RowsAffected() != 1 {
		return fmt.Errorf("ledger: %d rows: %w", tag.RowsAffected(), err)
	}
	return run.Checkpoint(ctx, tx, batch)
}
