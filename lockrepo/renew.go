package lockrepo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// $1 name, $2 token, $3 grant id, $4 ttl. It waits for the row, and judges it
// once it has it: an update that had to wait isn't judged again when the
// blocker rolls back. No row: not held.
const renewSQL = `
with mine as materialized (
  select name, expires_at from pawl.locks
   where name = $1 and token = $2 and grant_id = $3::uuid for no key update
)
update pawl.locks l
   set expires_at = clock_timestamp() + $4::interval, renewed_at = clock_timestamp(), ttl = $4::interval,
       beats = l.beats + 1, longest_gap = greatest(l.longest_gap, clock_timestamp() - l.renewed_at)
  from mine m where l.name = m.name and m.expires_at > clock_timestamp()
returning l.expires_at, clock_timestamp()`

// Renew extends l by its TTL from now. It answers a [*LostError], which is
// [ErrNotHeld], if the lease has ended: it never revives one and never changes
// the token. It waits while somebody has the lock's row, until ctx ends or l
// can't be trusted any more.
func (r *Repo) Renew(ctx context.Context, l Lease) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, max(l.left(Now()), minTTL))
	defer cancel()
	sent := Now()
	var until, now time.Time
	err := r.ask(ctx, query{renewSQL, []any{l.Token.Lock, l.Token.Seq, l.Grant.String(), l.TTL}, single(&until, &now)})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Lease{}, r.whyLost(ctx, l)
	case err != nil:
		return Lease{}, fmt.Errorf("lockrepo: renew %s: %w", l.Token, err)
	}
	l.sent, l.ExpiresAt = sent, until.UTC()
	return l, nil
}

func (r *Repo) whyLost(ctx context.Context, l Lease) error {
	out := []verdict{{lost: &LostError{Token: l.Token, Cause: ErrNotHeld}}}
	if err := r.ask(ctx, causeQuery([]Lease{l}, out)); err != nil {
		return fmt.Errorf("lockrepo: ask for the cause: %w", errors.Join(err, &LostError{Token: l.Token, Cause: ErrNotHeld}))
	}
	if out[0].lost == nil { // can't be: what ended stays ended
		return &LostError{Token: l.Token, Cause: ErrNotHeld}
	}
	return out[0].lost
}
