package lockrepo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawl/fence"
)

const maxIdempotencyKey = 255

// AcquireIdempotent is [Repo.AcquireRequest] for a caller that may ask again
// without knowing whether it was heard. q.Key, q.Lock and idempotencyKey name
// the request, body is a digest of what it says: asked again while its lease
// lives, it is answered the same grant and token, and moves nothing; after
// that, a new grant. The same name with another body answers [ErrReused].
// q.Grant must be zero. A grant whose reply is lost isn't given back: the
// caller asks again, or it expires.
func (r *Repo) AcquireIdempotent(ctx context.Context, q Request, idempotencyKey string, body [32]byte) (Lease, error) {
	q.Holder, q.TTL = cmp.Or(q.Holder, r.cfg.Holder), cmp.Or(q.TTL, r.cfg.TTL)
	if err := cmp.Or(checkIdempotent(q, idempotencyKey), checkTTL(q.TTL)); err != nil {
		return Lease{}, fmt.Errorf("lockrepo: acquire: %w", err)
	}
	ended := uuid.Nil
	for range maxTries {
		known, err := r.grantOf(ctx, q, idempotencyKey, body, ended)
		switch {
		case err != nil:
			return Lease{}, fmt.Errorf("lockrepo: acquire %q: %w", q.Lock, err)
		case known.Grant == uuid.Nil: // another's has just been written
			continue
		case known.Token.Seq != 0:
			return known, nil
		}
		q.Grant = known.Grant
		l, err := r.AcquireRequest(ctx, q)
		if !errors.Is(err, ErrEnded) {
			return l, err
		}
		ended = q.Grant
	}
	return Lease{}, fmt.Errorf("lockrepo: acquire %q: the request is asked too often at once", q.Lock)
}

func checkIdempotent(q Request, idempotencyKey string) error {
	switch {
	case idempotencyKey == "" || len(idempotencyKey) > maxIdempotencyKey || !isText(idempotencyKey):
		return badInput("idempotency key %.40q is empty, longer than %d bytes or not UTF-8 text: make one for each request", idempotencyKey, maxIdempotencyKey)
	case q.Grant != uuid.Nil:
		return badInput("grant %s is given beside an idempotency key: leave one of them out", q.Grant)
	}
	return checkName(q.Lock)
}

// $1 key, $2 lock, $3 idempotency key, $4 body, $5 a fresh grant id, $6 the grant that has ended: the request's, as one of these
// made it. No row: another's is just being written. A caller that is turned away again writes nothing.
const grantOfSQL = `
with known as materialized (
  select body, grant_id from pawl.idempotency where key = $1::text and lock = $2::text and idempotency_key = $3::text
), fresh as (
  insert into pawl.idempotency as i (key, lock, idempotency_key, body, grant_id)
  select $1::text, $2::text, $3::text, $4::bytea, $5::text::uuid
   where not exists (select from known k where k.grant_id <> $6::text::uuid or k.body <> $4::bytea)
  on conflict (key, lock, idempotency_key) do update set grant_id = excluded.grant_id, at = excluded.at
   where i.grant_id = $6::text::uuid and i.body = excluded.body
  returning body, grant_id
)
select x.body, x.grant_id::text, coalesce(l.token, 0), l.acquired_at, l.expires_at, coalesce(l.expires_at - l.renewed_at, '0'), coalesce(clock_timestamp() - l.renewed_at, '0')
  from (select * from fresh
        union all
        select * from known k where (k.grant_id <> $6::text::uuid or k.body <> $4::bytea) and not exists (select from fresh)) x
  left join pawl.locks l on l.name = $2::text and l.grant_id = x.grant_id and l.expires_at > clock_timestamp()`

// grantOf finds the grant of a request, with its token if its lease lives, or
// writes down a fresh one in the place of none or of the one that has ended.
// Without a grant: ask again.
func (r *Repo) grantOf(ctx context.Context, q Request, idempotencyKey string, body [32]byte, ended uuid.UUID) (Lease, error) {
	var said []byte
	var grant string
	var token int64
	var acquired, until *time.Time
	var ttl, age time.Duration
	sent := Now()
	args := []any{q.Key, q.Lock, idempotencyKey, body[:], uuid.NewString(), ended.String()}
	err := r.ask(ctx, query{grantOfSQL, args, single(&said, &grant, &token, &acquired, &until, &ttl, &age)})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Lease{}, nil
	case err != nil:
		return Lease{}, fmt.Errorf("find the request's grant: %w", err)
	case !bytes.Equal(said, body[:]):
		return Lease{}, ErrReused
	}
	id, err := uuid.Parse(grant)
	if err != nil || token == 0 {
		return Lease{Grant: id}, err
	}
	l := r.Granted(fence.Token{Lock: q.Lock, Seq: token}, id, q.Holder, ttl, sent.ago(age)) // trusted from its last renewal
	l.AcquiredAt, l.ExpiresAt = acquired.UTC(), until.UTC()
	return l, nil
}
