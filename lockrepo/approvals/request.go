package approvals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/lockrepo"
)

// Release is a lease that somebody wants released by force. The zero Valid
// means 15 minutes.
type Release struct {
	Lock   string
	Token  int64  // of the lease that is meant
	Reason string // 10 to 2000 characters
	Kill   bool   // also terminate the holder's open guarded transactions
	By     Person
	Valid  time.Duration // how long it may be approved: 1 to 60 minutes
}

// $1 lock, $2 token, $3 reason, $4 kill, $5 id, $6 name, $7 approver, $8 valid.
const requestSQL = `
select outcome, coalesce(request, 0)
  from pawl.request_release($1::text, $2::bigint, $3::text, $4::boolean, $5::text, $6::text, $7::boolean, $8::interval)`

// $1 lock.
const leaseSQL = `
select token, case when grant_id is null then 'free' when expires_at <= clock_timestamp() then 'stale' else 'held' end
  from pawl.locks where name = $1::text`

// RequestRelease asks for a forced release, with an audit row in the same
// transaction. Nothing is released until another person approves; with single
// operator set it is done at once where r.By may approve: then the Request is
// approved, and Self. It answers [lockrepo.ErrNotFound] if there is no such
// lock, [lockrepo.ErrNotHeld] if the token has no lease (any more),
// [ErrNotOperator] for a key that may not ask, and [lockrepo.ErrInput] for what
// isn't well-formed. An error beside a Request that is approved says that
// terminating the holder's transactions failed: the lease is released.
func (s *Store) RequestRelease(ctx context.Context, r Release) (Request, error) {
	r, err := r.check()
	if err != nil {
		return Request{}, fmt.Errorf("approvals: request release: %w", err)
	}
	var q Request
	var outcome string
	err = s.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		var id int64
		row := tx.QueryRow(ctx, requestSQL, exec, r.Lock, r.Token, r.Reason, r.Kill, r.By.ID, r.By.Name, r.By.Approver, r.Valid)
		if err := row.Scan(&outcome, &id); err != nil || id == 0 {
			return err
		}
		q, err = one(ctx, tx, id)
		return err
	})
	switch {
	case err != nil:
		return Request{}, fmt.Errorf("approvals: request release of %q: %w", r.Lock, err)
	case outcome == Pending:
		s.log.InfoContext(ctx, "forced release asked for", "lock", q.Lock, "token", q.Token, "approval", q.ID, "actor", q.RequestedBy, "reason", q.Reason)
		return q, nil
	case outcome == Approved:
		s.released(ctx, q)
		_, err := s.kill(ctx, q)
		return q, err
	}
	return Request{}, s.notAsked(ctx, r, outcome)
}

func (s *Store) notAsked(ctx context.Context, r Release, outcome string) error {
	tok := fence.Token{Lock: r.Lock, Seq: r.Token}
	switch outcome {
	case "absent":
		return fmt.Errorf("%w: %q", lockrepo.ErrNotFound, r.Lock)
	case "not_operator":
		return fmt.Errorf("%w: key %q for a release of %q", ErrNotOperator, r.By.ID, r.Lock)
	case "not_held":
		var token int64
		var state string
		err := s.pool.QueryRow(ctx, leaseSQL, exec, r.Lock).Scan(&token, &state)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && token == r.Token && state != lockrepo.Free {
			return fmt.Errorf("approvals: request release: %s has no lease: %w", tok, lockrepo.ErrNotHeld) // it has just changed
		}
		if err != nil {
			return fmt.Errorf("approvals: request release of %q: %w", r.Lock, err)
		}
		return fmt.Errorf("approvals: request release: %s has no lease, the lock is %s with token %s: %w",
			tok, state, fence.FormatSeq(token), lockrepo.ErrNotHeld)
	}
	return fmt.Errorf("approvals: request release of %q: answer %q is not known: is the schema newer than this program?", r.Lock, outcome)
}
