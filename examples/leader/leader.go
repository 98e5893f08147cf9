package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/lockrepo"
)

const (
	lock = "leader:loop"
	ttl  = time.Second
	pace = 20 * time.Millisecond // of a step: what it does before it writes
)

const createSQL = `
create table loop (one boolean primary key default true, n bigint not null default 0);
insert into loop default values;
create table steps (n bigint, token bigint, leader text);`

// lead stands for election, leads while it is elected, and stands again. It resigns when ctx ends.
func lead(ctx context.Context, pool *pgxpool.Pool, name string, broken bool) error {
	repo, err := lockrepo.New(lockrepo.Config{Pool: pool, Holder: name, TTL: ttl, Grace: ttl}) //nolint:contextcheck // it outlives ctx
	if err != nil {
		return err
	}
	defer repo.Close()
	for ctx.Err() == nil {
		err := repo.Hold(ctx, lock, func(ctx context.Context, l lockrepo.Lease) error { // elected
			for ctx.Err() == nil {
				if err := step(ctx, pool, l, broken); err != nil {
					return err
				}
			}
			return nil // it resigns: the lease is released, and the next one leads at once
		})
		if errors.Is(err, lockrepo.ErrHeld) { // somebody else leads
			wait(ctx, ttl/10)
		}
	}
	return nil
}

const stepSQL = `
with x as (update loop set n = n + 1 returning n) insert into steps select n, $1, $2 from x`

// step is one turn of the loop. Its context may have ended long ago when it comes to write, and nobody can tell it: a process
// that stands still hears nothing. The guard is what keeps an old leader out.
func step(ctx context.Context, pool *pgxpool.Pool, l lockrepo.Lease, broken bool) error {
	wait(ctx, pace)
	own := context.WithoutCancel(ctx)
	write := func(tx pgx.Tx) error {
		_, err := tx.Exec(own, stepSQL, l.Token.Seq, l.Holder)
		return err
	}
	if broken { // it has the lock, after all
		return pgx.BeginFunc(own, pool, write)
	}
	err := fence.Do(own, pool, l.Token, write)
	if errors.Is(err, fence.ErrStale) || errors.Is(err, fence.ErrNotHeld) {
		return errors.Join(err, fence.Refused(own, pool, l.Token, "loop", "step"))
	}
	return err
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
