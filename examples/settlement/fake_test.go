package settlement

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
)

// unguarded is a run whose transactions nobody guards: what is left between an
// old holder and the rows is the mark beside them.
type unguarded struct {
	pool      *pgxpool.Pool
	token     fence.Token
	saved     []byte // the checkpoint
	done      []int64
	completed int
}

func newToken(seq int64) *unguarded {
	return &unguarded{token: fence.Token{Lock: "job:settlement", Seq: seq}}
}

// successor goes on from the checkpoint of r with a token of its own.
func (r *unguarded) successor(seq int64) *unguarded {
	return &unguarded{pool: r.pool, token: fence.Token{Lock: r.token.Lock, Seq: seq}, saved: r.saved}
}

func (r *unguarded) Token() fence.Token     { return r.token }
func (r *unguarded) Logger() *slog.Logger   { return slog.New(slog.DiscardHandler) }
func (r *unguarded) Progress(done, _ int64) { r.done = append(r.done, done) }

func (r *unguarded) Tx(ctx context.Context, fn func(pgx.Tx) error) error {
	before := r.saved
	err := pgx.BeginFunc(ctx, r.pool, fn)
	if err != nil {
		r.saved = before
	}
	return err
}

func (r *unguarded) Checkpoint(_ context.Context, _ pgx.Tx, v any) (err error) {
	r.saved, err = json.Marshal(v)
	return err
}

func (r *unguarded) Resume(v any) (bool, error) {
	if r.saved == nil {
		return false, nil
	}
	return true, json.Unmarshal(r.saved, v)
}

func (r *unguarded) Complete(ctx context.Context, fn func(pgx.Tx) error) error {
	err := r.Tx(ctx, fn)
	if err == nil {
		r.completed++
	}
	return err
}

// guarded is the same under a lease: its transactions are fence.Do's.
type guarded struct{ *unguarded }

func (r guarded) Tx(ctx context.Context, fn func(pgx.Tx) error) error {
	before := r.saved
	err := fence.Do(ctx, r.pool, r.token, fn)
	if err != nil {
		r.saved = before
	}
	return err
}

func (r guarded) Complete(ctx context.Context, fn func(pgx.Tx) error) error {
	err := r.Tx(ctx, fn)
	if err == nil {
		r.completed++
	}
	return err
}

func aDay(from time.Time) day { return newDay(from, from.AddDate(0, 0, 1), uuid.New()) }
