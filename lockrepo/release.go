package lockrepo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// $1 name, $2 token (null: whichever this grant has), $3 grant id. The row
// stays, so that tokens go on growing. It awaits no flush: a release lost in a
// crash is an expiry. No row: not held.
const releaseSQL = `
with mine as materialized (
  select * from pawl.locks where name = $1 and ($2::bigint is null or token = $2) and grant_id = $3::uuid for no key update
), freed as (
  update pawl.locks l set grant_id = null, holder = null, key = null, expires_at = null, renewed_at = clock_timestamp()
    from mine m where l.name = m.name returning l.name
), ended as (
  insert into pawl.tenures (lock, token, grant_id, holder, key, acquired_at, ended_at, how, beats, longest_gap)
  select name, token, grant_id, holder, key, acquired_at, least(expires_at, clock_timestamp()),
         case when expires_at > clock_timestamp() then 'released' else 'expired' end, beats, longest_gap from mine
  returning how, extract(epoch from ended_at - acquired_at)::float8 as held
)
select e.how, e.held, set_config('synchronous_commit', 'off', true), pg_notify('pawl_released', name)::text
  from freed cross join ended e`

// Release ends l now and wakes who waits for the lock. It answers a
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
	var ignored string
	err = r.ask(ctx, query{releaseSQL, []any{lock, token, grant}, single(&how, &seconds, &ignored, &ignored)})
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
