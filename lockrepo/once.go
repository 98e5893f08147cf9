package lockrepo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const onceDoneSQL = `select exists (select from pawl.once_per where lock = $1 and key = $2)`

// OnceDone reports whether what is to be done once per key, under that lock, was
// done. Ask it under the lease too: somebody may have finished since.
func (r *Repo) OnceDone(ctx context.Context, lock, key string) (done bool, err error) {
	if err := checkOnce(lock, key); err != nil {
		return false, fmt.Errorf("lockrepo: once: %w", err)
	}
	if err := r.ask(ctx, query{onceDoneSQL, []any{lock, key}, single(&done)}); err != nil {
		return false, fmt.Errorf("lockrepo: once %q per %q: %w", lock, key, err)
	}
	return done, nil
}

// $1 name, $2 token, $3 grant id, $4 key. The row is locked, then judged, then noted under; from here to COMMIT nobody can
// be granted the lock. No row: not held.
const finishOnceSQL = `
with mine as materialized (
  select name, token, holder, expires_at from pawl.locks
   where name = $1 and token = $2 and grant_id = $3::text::uuid for no key update
)
insert into pawl.once_per (lock, key, token, holder)
select m.name, $4::text, m.token, m.holder from mine m where m.expires_at > clock_timestamp()
    on conflict (lock, key) do update set key = excluded.key
returning token`

const finishedSQL = `select exists (select from pawl.once_per where lock = $1 and key = $2 and token = $3)`

// pawl.release awaits no flush, but this one has something to keep.
const finishReleaseSQL = `
select coalesce(how, '') || set_config('synchronous_commit', $4::text, true)
  from pawl.release($1::text, $2::bigint, $3::text::uuid)`

// FinishOnce notes that key was done, and releases the lease, in one
// transaction: from then on [Repo.OnceDone] says so, for ever. It answers
// [ErrNotHeld] if the lease has ended before; then nothing was noted. When
// [Unknown] says so of its answer, ask again: the same lease is noted once.
func (r *Repo) FinishOnce(ctx context.Context, l Lease, key string) error {
	if err := checkOnce(l.Token.Lock, key); err != nil {
		return fmt.Errorf("lockrepo: finish once: %w", err)
	}
	err := r.on(ctx, func(ctx context.Context, c *pgx.Conn, plain bool) error {
		tx, err := c.BeginTx(ctx, pgx.TxOptions{BeginQuery: beginSQL})
		if err != nil {
			return err
		}
		defer rollback(ctx, tx)
		var mode []any
		if plain {
			mode = []any{pgx.QueryExecModeExec}
		}
		return finishOnce(ctx, tx, l, key, mode)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return r.notFinished(ctx, l, key)
	case err != nil:
		return fmt.Errorf("lockrepo: finish %s once per %q: %w", l.Token, key, err)
	}
	r.cfg.Logger.DebugContext(ctx, "lock released", "token", l.Token, "grant_id", l.Grant, "once_per", key)
	return nil
}

// notFinished says why, unless an earlier call, whose answer was lost, has done it.
func (r *Repo) notFinished(ctx context.Context, l Lease, key string) error {
	var done bool
	err := r.ask(ctx, query{finishedSQL, []any{l.Token.Lock, key, l.Token.Seq}, single(&done)})
	switch {
	case err != nil:
		return fmt.Errorf("lockrepo: finish %s once per %q: %w", l.Token, key, err)
	case done:
		return nil
	}
	return r.whyLost(ctx, l)
}

func finishOnce(ctx context.Context, tx pgx.Tx, l Lease, key string, mode []any) error {
	lease := slices.Concat(mode, []any{l.Token.Lock, l.Token.Seq, l.Grant.String()})
	if err := tx.QueryRow(ctx, finishOnceSQL, slices.Concat(lease, []any{key})...).Scan(new(int64)); err != nil {
		return err
	}
	var sync, how string
	if err := tx.QueryRow(ctx, "select current_setting('synchronous_commit')", mode...).Scan(&sync); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, finishReleaseSQL, slices.Concat(lease, []any{sync})...).Scan(&how); err != nil {
		return err
	}
	if how != "released"+sync { // its time was over in between
		return pgx.ErrNoRows
	}
	return tx.Commit(ctx)
}

// rollback does nothing after COMMIT.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = tx.Rollback(ctx)
}

func checkOnce(lock, key string) error {
	switch {
	case key == "":
		return badInput(`once-per key is empty: give one, such as "2026-09-16"`)
	case len(key) > maxName:
		return badInput("once-per key has %d bytes: shorten it to at most %d", len(key), maxName)
	case !isText(key):
		return badInput("once-per key %q is not UTF-8 text: remove the bytes that are not", key)
	}
	return checkName(lock)
}
