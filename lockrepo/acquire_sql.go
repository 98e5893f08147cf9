package lockrepo

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// acquireSQL asks for one lock. $1 name, $2 holder, $3 grant id, $4 ttl in µs, $5 key, $6 reenter: also take a row whose holder
// and key are the caller's, $7 request id. One row always; see the function.
const acquireSQL = `
select 1, outcome, coalesce(token, 0), coalesce(holder, ''), acquired_at, expires_at
  from pawl.acquire($1::text, $2::text, $3::text::uuid, $4::bigint * interval '1 us', $5::text, $6::boolean, nullif($7::text, ''))`

// acquireManySQL asks for many, each as if it were alone: what waits while a call is on its way goes with the next. It never
// waits, so that none of them holds up the others.
const acquireManySQL = `
select q.nth, a.outcome, coalesce(a.token, 0), coalesce(a.holder, ''), a.acquired_at, a.expires_at
  from unnest($1::text[], $2::text[], $3::text[]::uuid[], $4::bigint[], $5::text[], $6::boolean[], $7::text[])
  with ordinality q (name, holder, grant_id, ttl, key, reenter, request, nth)
 cross join lateral pawl.acquire(q.name, q.holder, q.grant_id, q.ttl * interval '1 us', q.key, q.reenter, nullif(q.request, '')) a`

// grant is the acquire statement's answer.
type grant struct {
	outcome, holder string
	token           int64
	acquired        *time.Time
	expires         *time.Time
	sent            Instant // before the statement was sent
}

func (r *Repo) acquireMany(ctx context.Context, qs []Request) ([]grant, error) {
	if q := qs[0]; len(qs) == 1 {
		return r.acquireAll(ctx, 1, acquireSQL, q.Lock, q.Holder, q.Grant.String(), q.TTL.Microseconds(), q.Key, q.Reenter, q.RequestID)
	}
	n := len(qs)
	names, holders, grants, keys := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	ttls, reenter, requests := make([]int64, n), make([]bool, n), make([]string, n)
	for i, q := range qs {
		names[i], holders[i], grants[i], keys[i] = q.Lock, q.Holder, q.Grant.String(), q.Key
		ttls[i], reenter[i], requests[i] = q.TTL.Microseconds(), q.Reenter, q.RequestID
	}
	return r.acquireAll(ctx, n, acquireManySQL, names, holders, grants, ttls, keys, reenter, requests)
}

func (r *Repo) acquireAll(ctx context.Context, n int, sql string, args ...any) ([]grant, error) {
	out, outcome, sent := make([]grant, n), "", Now()
	err := r.alone(ctx, query{sql, args, func(rows pgx.Rows) error {
		var nth int
		var a grant
		_, err := pgx.ForEachRow(rows, []any{&nth, &a.outcome, &a.token, &a.holder, &a.acquired, &a.expires}, func() error {
			outcome, a.sent = a.outcome, sent
			out[nth-1] = a
			return nil
		})
		return err
	}}, &outcome)
	return out, err
}
