package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/lockrepo"
)

const (
	readSQL  = `select quantity from items where id = $1`
	writeSQL = `update items set quantity = $2 where id = $1`
	stallSQL = `update stall set pid = $1 where pid is null`
)

// buyUnderLock sells as it is often done: take the lock, look, write. The lease is checked, too, and that doesn't help: the
// process may stop between the check and the write, for longer than the lease lasts. The first buyer stops there.
func buyUnderLock(ctx context.Context, repo *lockrepo.Repo, pool *pgxpool.Pool, item string) error {
	err := repo.Hold(ctx, "stock:"+item, func(held context.Context, _ lockrepo.Lease) error {
		var left int
		if err := pool.QueryRow(ctx, readSQL, item).Scan(&left); err != nil || left < 1 {
			return err
		}
		if err := held.Err(); err != nil { // still mine, so what can go wrong
			return err
		}
		if err := stopHere(ctx, pool); err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, writeSQL, item, left-1); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, orderSQL, uuid.New(), item, "sold")
			return err
		})
	})
	if errors.Is(err, lockrepo.ErrHeld) || errors.Is(err, lockrepo.ErrNotHeld) {
		return nil // another buyer's turn
	}
	return err
}

// stopHere stands still as a process does that is swapped out, suspended or collecting garbage: once in a play, until somebody
// continues it.
func stopHere(ctx context.Context, pool *pgxpool.Pool) error {
	tag, err := pool.Exec(ctx, stallSQL, os.Getpid())
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	err = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	wait(ctx, 100*time.Millisecond) // the signal stops the other threads first, perhaps
	return err
}
