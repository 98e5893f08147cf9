package approvals

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Filter chooses requests. The zero Filter means the latest 100.
type Filter struct {
	State  string // pending, approved, declined, expired or stale; empty: all
	Before int64  // ids below this one: the last of the page before; 0: from the newest
	Limit  int    // 1 to 1000; 0: 100
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// An open request is what it would be found to be now: its row says so only
// once somebody has come for it.
const requestsSQL = `
select a.id, a.action, a.lock, a.token, a.reason, a.kill, a.requested_by_id, a.requested_by, a.requested_at, a.expires_at, n.state,
       coalesce(a.decided_by_id, ''), coalesce(a.decided_by, ''), a.decided_at, a.note, a.self, coalesce(l.holder, '')
  from pawl.approvals a
  left join pawl.locks l on l.name = a.lock
 cross join lateral (select case when a.state <> 'pending' then a.state
                                 when a.expires_at <= clock_timestamp() then 'expired'
                                 when l.token is distinct from a.token or l.grant_id is null then 'stale'
                                 else 'pending' end as state) n`

// $1 before, $2 limit, $3 state. Rows of another state than pending stay as they are.
const (
	listSQL    = requestsSQL + ` where ($1::bigint = 0 or a.id < $1::bigint) order by a.id desc limit $2::int`
	listOfSQL  = requestsSQL + ` where ($1::bigint = 0 or a.id < $1::bigint) and a.state in ($3::text, 'pending') and n.state = $3::text order by a.id desc limit $2::int`
	requestOne = requestsSQL + ` where a.id = $1::bigint`
)

// List returns requests, the newest first.
func (s *Store) List(ctx context.Context, f Filter) ([]Request, error) {
	if f.Limit == 0 {
		f.Limit = defaultLimit
	}
	switch {
	case f.Limit < 1 || f.Limit > maxLimit:
		return nil, fmt.Errorf("approvals: list: %w", badInput("limit %d: give one between 1 and %d", f.Limit, maxLimit))
	case f.Before < 0:
		return nil, fmt.Errorf("approvals: list: %w", badInput("before is %d: give the id of the last request of the page before", f.Before))
	}
	sql, args := listSQL, []any{exec, f.Before, f.Limit}
	switch f.State {
	case "":
	case Pending, Approved, Declined, Expired, Stale:
		sql, args = listOfSQL, append(args, f.State)
	default:
		return nil, fmt.Errorf("approvals: list: %w", badInput("state %q: give %s, %s, %s, %s or %s, or leave it empty for all",
			f.State, Pending, Approved, Declined, Expired, Stale))
	}
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("approvals: list: %w", err)
	}
	out, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("approvals: list: %w", err)
	}
	return out, nil
}

// Get returns one request, or [ErrNotFound].
func (s *Store) Get(ctx context.Context, id int64) (Request, error) {
	q, err := one(ctx, s.pool, id)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Request{}, fmt.Errorf("%w: %d", ErrNotFound, id)
	case err != nil:
		return Request{}, fmt.Errorf("approvals: get %d: %w", id, err)
	}
	return q, nil
}

func one(ctx context.Context, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, id int64,
) (Request, error) {
	rows, err := db.Query(ctx, requestOne, exec, id)
	if err != nil {
		return Request{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scan)
}

func scan(row pgx.CollectableRow) (q Request, err error) {
	err = row.Scan(&q.ID, &q.Action, &q.Lock, &q.Token, &q.Reason, &q.Kill, &q.RequestedByID, &q.RequestedBy, &q.RequestedAt, &q.ExpiresAt,
		&q.State, &q.DecidedByID, &q.DecidedBy, &q.DecidedAt, &q.Note, &q.Self, &q.Holder)
	q.RequestedAt, q.ExpiresAt = q.RequestedAt.UTC(), q.ExpiresAt.UTC()
	if q.DecidedAt != nil {
		at := q.DecidedAt.UTC()
		q.DecidedAt = &at
	}
	return q, err
}
