package approvals

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/lockrepo"
)

// $1 request, $2 id, $3 name, $4 approver, $5 approve, $6 note.
const decideSQL = `select pawl.decide_release($1::bigint, $2::text, $3::text, $4::boolean, $5::boolean, $6::text)`

// $1 lock, $2 token.
const tenureSQL = `
select t.lock, t.token, coalesce(t.holder, ''), t.acquired_at, t.ended_at, t.how, t.successor,
       (select count(*) from pawl.refusals f where f.lock = t.lock and f.token = t.token and not f.passed), t.beats, t.longest_gap
  from pawl.tenures t where t.lock = $1::text and t.token = $2::bigint`

// $1 token. Backends that still have a guarded transaction open under it: their
// guard has given them the name.
const killSQL = `
select count(*) from (
  select pg_terminate_backend(pid) as killed from pg_stat_activity
   where application_name = 'pawl ' || $1::bigint and pid <> pg_backend_pid()) k where killed`

// Decide approves or declines a request, in one transaction with the release,
// its tenure and the audit row. The Tenure is that of the released lease, the
// zero one without a release; its Killed counts the transactions that were
// terminated afterwards. A no needs a note; who has asked may give it too, to
// take the request back.
//
// It answers [ErrNotFound], [ErrNotApprover], [ErrSamePerson], [ErrExpired], a
// [*DecidedError], [lockrepo.ErrNotHeld] where the lease has ended meanwhile (the
// request is stale from then on), or [lockrepo.ErrInput]. With the last but one
// and [ErrExpired] comes the Request as it is now. An error beside a Request
// that is approved says that terminating transactions failed: the lease is
// released. Any other error leaves open whether it was carried out: [Store.Get]
// says.
func (s *Store) Decide(ctx context.Context, id int64, by Person, approve bool, note string) (Request, lockrepo.Tenure, error) {
	by, err := by.check()
	if err == nil {
		note, err = checkNote(approve, note)
	}
	if err != nil {
		return Request{}, lockrepo.Tenure{}, fmt.Errorf("approvals: decide %d: %w", id, err)
	}
	var q Request
	var t lockrepo.Tenure
	var outcome string
	err = s.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if err := tx.QueryRow(ctx, decideSQL, exec, id, by.ID, by.Name, by.Approver, approve, note).Scan(&outcome); err != nil || outcome == "absent" {
			return err
		}
		if q, err = one(ctx, tx, id); err == nil && outcome == Approved {
			t, err = tenure(ctx, tx, q)
		}
		return err
	})
	if err != nil {
		return Request{}, lockrepo.Tenure{}, fmt.Errorf("approvals: decide %d: %w", id, err)
	}
	switch outcome {
	case Approved:
		s.released(ctx, q)
		t.Killed, err = s.kill(ctx, q)
		return q, t, err
	case Declined:
		s.log.InfoContext(ctx, "forced release declined", "lock", q.Lock, "token", q.Token, "approval", q.ID, "actor", q.DecidedBy, "note", q.Note)
		return q, t, nil
	}
	return q, t, undecided(id, by, q, outcome)
}

func undecided(id int64, by Person, q Request, outcome string) error {
	switch outcome {
	case "absent":
		return fmt.Errorf("%w: %d", ErrNotFound, id)
	case "not_approver":
		return fmt.Errorf("%w: %q, request %d", ErrNotApprover, by.Name, id)
	case "same_person":
		return fmt.Errorf("%w: request %d is of %q", ErrSamePerson, id, by.Name)
	case Expired:
		return fmt.Errorf("%w: request %d, at %s", ErrExpired, id, q.ExpiresAt.Format(time.RFC3339))
	case Stale:
		return fmt.Errorf("approvals: request %d: %s has no lease any more, the lock is with %s: %w",
			id, fence.Token{Lock: q.Lock, Seq: q.Token}, holder(q), lockrepo.ErrNotHeld)
	case "decided":
		e := &DecidedError{ID: id, State: q.State, By: q.DecidedBy}
		if q.DecidedAt != nil {
			e.At = *q.DecidedAt
		}
		return e
	}
	return fmt.Errorf("approvals: decide %d: answer %q is not known: is the schema newer than this program?", id, outcome)
}

func holder(q Request) string {
	if q.Holder == "" {
		return "nobody"
	}
	return fmt.Sprintf("%q", q.Holder)
}

func tenure(ctx context.Context, tx pgx.Tx, q Request) (t lockrepo.Tenure, err error) {
	err = tx.QueryRow(ctx, tenureSQL, exec, q.Lock, q.Token).Scan(&t.Lock, &t.Token, &t.Holder, &t.AcquiredAt, &t.EndedAt,
		&t.How, &t.Successor, &t.Refusals, &t.Beats, (*time.Duration)(&t.LongestGap))
	if t.EndedAt = t.EndedAt.UTC(); t.AcquiredAt != nil {
		*t.AcquiredAt = t.AcquiredAt.UTC()
	}
	return t, err
}

func (s *Store) released(ctx context.Context, q Request) {
	s.log.WarnContext(ctx, "lock released by force", "lock", q.Lock, "token", q.Token, "approval", q.ID,
		"actor", q.RequestedBy, "approver", q.DecidedBy, "reason", q.Reason, "single_operator", q.Self)
}

// kill is step two, after the release has committed.
func (s *Store) kill(ctx context.Context, q Request) (n int64, err error) {
	if !q.Kill {
		return 0, nil
	}
	err = s.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error { return tx.QueryRow(ctx, killSQL, exec, q.Token).Scan(&n) })
	if err != nil {
		return 0, fmt.Errorf("approvals: %q is released, but its transactions were not terminated: %w", q.Lock, err)
	}
	return n, nil
}
