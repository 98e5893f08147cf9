package lockrepo

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// StaleFilter chooses stale claims. The zero StaleFilter means the latest 100.
type StaleFilter struct {
	Open   bool   // only those after which nobody has taken the lock yet
	Lock   string // empty: of all locks
	Before string // what comes after it: [Tenure.Cursor] of the last of the page before; empty: from the latest end
	Limit  int    // 1 to 1000; 0: 100
}

// Cursor is where the next page of stale claims goes on, for
// [StaleFilter].Before.
func (t Tenure) Cursor() string {
	return t.EndedAt.UTC().Format(time.RFC3339Nano) + " " + strconv.FormatInt(t.Token, 10) + " " + t.Lock
}

// place is a cursor taken apart.
type place struct {
	ended time.Time
	token int64
	lock  string
}

func placeOf(cursor string) (p place, err error) {
	at, rest, _ := strings.Cut(cursor, " ")
	token, lock, ok := strings.Cut(rest, " ")
	if p.ended, err = time.Parse(time.RFC3339Nano, at); err == nil {
		p.token, err = strconv.ParseInt(token, 10, 64)
	}
	if p.lock = lock; err != nil || !ok || !isText(lock) || p.ended.Year() < 1 || p.ended.Year() > 9999 {
		return place{}, badInput("before %q is no place in this list: give the one that came with the page before, or none", cursor)
	}
	return p, nil
}

// Leases that ended without a release, those too that nobody has taken over yet: their row still says so. The ended ones are
// read along an index in its order, which the row comparisons keep the planner to.
const (
	staleSQL = `
select s.lock, s.token, coalesce(s.holder, ''), s.acquired_at, s.ended_at, s.how, s.successor,
       (select count(*) from (select from pawl.refusals f where f.lock = s.lock and f.token = s.token and not f.passed limit 10001) f), s.beats, s.longest_gap,
       coalesce(s.key, ''), coalesce(k.name, s.key, ''), coalesce(s.request_id, ''),
       coalesce(h.holder, l.holder, ''), coalesce(h.acquired_at, l.acquired_at)
  from (
    (select lock, token, holder, acquired_at, ended_at, how, successor, beats, longest_gap, key, request_id from pawl.tenures
      where {ended} limit {limit})
    union all
    (select name, token, holder, acquired_at, expires_at, 'expired', null, beats, longest_gap, key, request_id from pawl.locks
      where grant_id is not null and expires_at <= (select clock_timestamp()) and {leased}
      order by expires_at desc, name desc, token desc limit {limit})) s
  left join lateral (select holder, acquired_at from pawl.tenures where lock = s.lock and token = s.successor limit 1) h on true
  left join lateral (select holder, acquired_at from pawl.locks where name = s.lock and token = s.successor limit 1) l on true
  left join pawl.keys k on k.id = s.key
 order by s.ended_at desc, s.lock desc, s.token desc limit {limit}`

	anyEnd  = ` and how in ('expired', 'taken_over', 'forced')`
	openEnd = ` and how in ('expired', 'forced') and successor is null`
)

// StaleClaims returns the leases that ended without a release, the latest end
// first: expired, taken over, or released by force.
func (r *Repo) StaleClaims(ctx context.Context, f StaleFilter) ([]Tenure, error) {
	sql, args, err := f.sql()
	if err != nil {
		return nil, fmt.Errorf("lockrepo: stale claims: %w", err)
	}
	return r.tenures(ctx, sql, args...)
}

func (f StaleFilter) sql() (sql string, args []any, err error) {
	n, err := checkLimit(f.Limit)
	if err == nil && f.Lock != "" {
		err = checkName(f.Lock)
	}
	if err != nil {
		return "", nil, err
	}
	arg := func(v any, as string) string {
		args = append(args, v)
		return "$" + strconv.Itoa(len(args)) + "::" + as
	}
	ended, name, token := "'infinity'::timestamptz", "''", "0"
	if f.Before != "" {
		p, err := placeOf(f.Before)
		if err != nil {
			return "", nil, err
		}
		ended, name, token = arg(p.ended, "timestamptz"), arg(p.lock, "text"), arg(p.token, "bigint")
	}
	limit, how := arg(n, "int"), anyEnd
	if f.Open {
		how = openEnd
	}
	was := "(ended_at, lock, token) < (" + ended + ", " + name + ", " + token + ")" + how + "\n      order by ended_at desc, lock desc, token desc"
	is := "(expires_at, name, token) < (" + ended + ", " + name + ", " + token + ")"
	if f.Lock != "" {
		lock := arg(f.Lock, "text")
		const key = "((how <> 'released'), lock, ended_at, token)"
		was = key + " >= (true, " + lock + ", '-infinity', 0) and " + key + " < (true, " + lock + ", " + ended + ", " + token + ")" + how +
			"\n      order by (how <> 'released') desc, lock desc, ended_at desc, token desc"
		is += " and name = " + lock
	}
	return strings.NewReplacer("{ended}", was, "{leased}", is, "{limit}", limit).Replace(staleSQL), args, nil
}
