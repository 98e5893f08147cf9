package lockrepo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// $1 name, $2 token (null: whichever this grant has), $3 grant id. An empty
// how: not held.
const releaseSQL = `select coalesce(how, ''), coalesce(held, 0) from pawl.release($1::text, $2::bigint, $3::text::uuid)`

// Release ends l now and wakes the runner whose lane waits for the lock. It answers a
// [*LostError], which is [ErrNotHeld], if the lease had ended already.
func (r *Repo) Release(ctx context.Context, l Lease) error {
	how, held, err := r.release(ctx, l.Token.Lock, &l.Token.Seq, l.Grant.String())
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return r.whyLost(ctx, l)
	case err != nil:
		return fmt.Errorf("lockrepo: release %s: %w", l.Token, err)
	}
	r.m.ended(how, held)
	r.cfg.Logger.DebugContext(ctx, "lock released", "token", l.Token, "grant_id", l.Grant)
	if how != "released" {
		return &LostError{Token: l.Token, Cause: ErrExpired}
	}
	return nil
}

func (r *Repo) release(ctx context.Context, lock string, token *int64, grant string) (how string, held time.Duration, err error) {
	var seconds float64
	err = r.alone(ctx, query{releaseSQL, []any{lock, token, grant}, single(&how, &seconds)}, &how)
	if err == nil && how == "" {
		err = pgx.ErrNoRows
	}
	return how, time.Duration(seconds * float64(time.Second)), err
}

// undo releases what an acquire without an answer may have been granted. The
// server may still be at it, so one answer of "not held" isn't the last word.
func (r *Repo) undo(ctx context.Context, q Request) {
	ctx, cancel := context.WithTimeout(ctx, q.TTL)
	defer cancel()
	tick := time.NewTicker(max(q.TTL/10, minTTL))
	defer tick.Stop()
	for range 3 {
		_, _, err := r.release(ctx, q.Lock, nil, q.Grant.String())
		if err == nil {
			r.cfg.Logger.InfoContext(ctx, "unanswered grant released", "lock", q.Lock, "grant_id", q.Grant)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
