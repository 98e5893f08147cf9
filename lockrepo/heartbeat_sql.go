package lockrepo

import (
	"time"

	"github.com/jackc/pgx/v5"
)

// $1 names, $2 tokens, $3 grant ids, $4 ttls. A locked row is skipped, so that
// it can't hold up the others. Rows missing from the answer are looked at and,
// if they still seem ours, asked for one by one.
const beatSQL = `
with mine as materialized (
  select l.name, l.expires_at, r.ttl, r.i
    from unnest($1::text[], $2::bigint[], $3::uuid[], $4::interval[]) with ordinality as r(name, token, grant_id, ttl, i)
    join pawl.locks l on l.name = r.name and l.token = r.token and l.grant_id = r.grant_id
     for no key update of l skip locked
)
update pawl.locks l
   set expires_at = clock_timestamp() + m.ttl, renewed_at = clock_timestamp(), ttl = m.ttl,
       beats = l.beats + 1, longest_gap = greatest(l.longest_gap, clock_timestamp() - l.renewed_at)
  from mine m where l.name = m.name and m.expires_at > clock_timestamp()
returning m.i, l.expires_at, clock_timestamp()`

// Why a lease is not held, or that it seems to be. It takes no lock. What a
// plain read shows as ended has ended: nothing revives a lease.
const causeSQL = `
select r.i,
       case when l.token = r.token and l.grant_id = r.grant_id and l.expires_at > clock_timestamp() then 'live'
            when t.how in ('forced', 'released') then t.how
            when l.token > r.token or t.successor is not null then 'taken_over'
            else 'expired' end,
       coalesce(t.successor, case when l.token > r.token then l.token end, 0)
  from unnest($1::text[], $2::bigint[], $3::uuid[]) with ordinality as r(name, token, grant_id, i)
  left join pawl.locks l on l.name = r.name
  left join pawl.tenures t on t.lock = r.name and t.token = r.token`

// verdict is what the database says about one lease: renewed, lost, or neither
// (its row is locked by somebody).
type verdict struct {
	expires time.Time // zero: not renewed
	lost    *LostError
}

func columns(ls []Lease) (names []string, tokens []int64, grants []string, ttls []time.Duration) {
	for i := range ls {
		names, tokens = append(names, ls[i].Token.Lock), append(tokens, ls[i].Token.Seq)
		grants, ttls = append(grants, ls[i].Grant.String()), append(ttls, ls[i].TTL)
	}
	return names, tokens, grants, ttls
}

// beatQuery renews ls; it fills out by index and now, which stays zero when
// nothing was renewed.
func beatQuery(ls []Lease, out []verdict, now *time.Time) query {
	names, tokens, grants, ttls := columns(ls)
	return query{beatSQL, []any{names, tokens, grants, ttls}, func(rows pgx.Rows) error {
		var i int
		var until time.Time
		_, err := pgx.ForEachRow(rows, []any{&i, &until, now}, func() error {
			out[i-1].expires = until.UTC()
			return nil
		})
		return err
	}}
}

// causeQuery finds out about ls; it sets out[i].lost by index, to nil where the
// lease seems to be live.
func causeQuery(ls []Lease, out []verdict) query {
	names, tokens, grants, _ := columns(ls)
	return query{causeSQL, []any{names, tokens, grants}, func(rows pgx.Rows) error {
		var i int
		var state string
		var successor int64
		_, err := pgx.ForEachRow(rows, []any{&i, &state, &successor}, func() error {
			out[i-1].lost = lostAs(ls[i-1], state, successor)
			return nil
		})
		return err
	}}
}

func lostAs(l Lease, state string, successor int64) *LostError {
	e := &LostError{Token: l.Token, Successor: successor}
	switch state {
	case "live":
		return nil
	case "forced":
		e.Cause = ErrForced
	case "taken_over":
		e.Cause = ErrTakenOver
	case "expired":
		e.Cause = ErrExpired
	default: // released by this very grant
		e.Cause = ErrNotHeld
	}
	return e
}
