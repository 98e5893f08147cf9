package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// turn is the advisory lock that replicas take turns by: "pawl" "migr".
	turn        = 0x7061776c_6d696772
	turnPoll    = 100 * time.Millisecond
	turnBeat    = time.Second
	lockTimeout = "'200ms'"
	patience    = time.Minute
)

// alone runs fn while no other replica does. The turn is held by an open
// transaction, since behind a transaction pooler a session lock would stay
// with a server connection that is no longer ours; and it is polled, since a
// waiting session holds a snapshot that can deadlock with what is built
// concurrently.
func alone(ctx context.Context, pool *pgxpool.Pool, fn func(context.Context, *pgxpool.Pool) error) error {
	own, err := ownPool(ctx, pool)
	if err != nil {
		return err
	}
	defer own.Close()
	tx, err := takeTurn(ctx, own)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		keepTurn(ctx, tx, cancel)
	}()
	err = fn(ctx, own)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = errors.Join(err, cause)
	}
	cancel(nil)
	<-done
	rollback(ctx, tx)
	return err
}

// ownPool has room for the turn, for goose and for River.
func ownPool(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Pool, error) {
	config := pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = 3, 0, 0
	return pgxpool.NewWithConfig(ctx, config)
}

func takeTurn(ctx context.Context, own *pgxpool.Pool) (pgx.Tx, error) {
	tick := time.NewTicker(turnPoll)
	defer tick.Stop()
	for {
		tx, err := tryTurn(ctx, own)
		if err != nil || tx != nil {
			return tx, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another process is migrating: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// noTimeouts keeps the server from ending the transaction while it waits for
// fn. It asks which of the settings this server has.
const noTimeouts = `
select set_config(name, '0', true) from pg_settings
 where name in ('idle_in_transaction_session_timeout', 'transaction_timeout', 'statement_timeout')`

// tryTurn returns no transaction when somebody else has the turn.
func tryTurn(ctx context.Context, own *pgxpool.Pool) (pgx.Tx, error) {
	tx, err := own.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, err
	}
	var ours bool
	err = tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, int64(turn)).Scan(&ours)
	if err == nil && ours {
		if _, err = tx.Exec(ctx, noTimeouts); err == nil {
			return tx, nil
		}
	}
	rollback(ctx, tx)
	return nil, err
}

// keepTurn speaks now and then, so that nobody on the way takes the
// connection for dead, and ends the work when the turn is lost after all.
func keepTurn(ctx context.Context, tx pgx.Tx, lost context.CancelCauseFunc) {
	tick := time.NewTicker(turnBeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// Not with ctx: a cancelled query would break the connection.
		if _, err := tx.Exec(context.WithoutCancel(ctx), `select 1`); err != nil {
			lost(fmt.Errorf("lost the turn to migrate: %w", err))
			return
		}
	}
}

func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = tx.Rollback(ctx) // If it can't be said, the connection is closed, which ends it too.
}

// givingWay repeats fn while a lock that it wants is taken.
func givingWay(ctx context.Context, fn func() error) error {
	tick := time.NewTicker(turnPoll)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for {
		err := fn()
		if !gaveWay(err) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("other sessions have kept a table busy for %s, end their transactions and try again: %w", patience, err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func gaveWay(err error) bool {
	const lockNotAvailable, deadlockDetected = "55P03", "40P01"
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == lockNotAvailable || pgErr.Code == deadlockDetected)
}
