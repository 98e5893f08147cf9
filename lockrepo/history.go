package lockrepo

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// $1 lock, $2 before (0: newest), $3 limit.
const historySQL = `
select t.lock, t.token, coalesce(t.holder, ''), t.acquired_at, t.ended_at, t.how, t.successor,
       (select count(*) from pawl.refusals f where f.lock = t.lock and f.token = t.token and not f.passed), t.beats, t.longest_gap,
       coalesce(t.key, ''), coalesce(k.name, t.key, ''), coalesce(t.request_id, ''), '', null::timestamptz
  from pawl.tenures t left join pawl.keys k on k.id = t.key
 where t.lock = $1 and ($2::bigint = 0 or t.token < $2::bigint)
 order by t.token desc limit $3::int`

// Leases that ended without a release, those too that nobody has taken over
// yet: their row still says so. $1 limit.
const staleSQL = `
select s.lock, s.token, coalesce(s.holder, ''), s.acquired_at, s.ended_at, s.how, s.successor,
       (select count(*) from pawl.refusals f where f.lock = s.lock and f.token = s.token and not f.passed), s.beats, s.longest_gap,
       coalesce(s.key, ''), coalesce(k.name, s.key, ''), coalesce(s.request_id, ''), coalesce(h.holder, l.holder, ''), coalesce(h.acquired_at, l.acquired_at)
  from (
    (select lock, token, holder, acquired_at, ended_at, how, successor, beats, longest_gap, key, request_id from pawl.tenures
      where how in ('expired', 'taken_over', 'forced') order by ended_at desc limit $1::int)
    union all
    (select name, token, holder, acquired_at, expires_at, 'expired', null, beats, longest_gap, key, request_id from pawl.locks
      where grant_id is not null and expires_at <= clock_timestamp() order by expires_at desc limit $1::int)) s
  left join pawl.tenures h on h.lock = s.lock and h.token = s.successor
  left join pawl.locks l on l.name = s.lock and l.token = s.successor
  left join pawl.keys k on k.id = s.key
 order by s.ended_at desc, s.lock limit $1::int`

// History returns the ended leases of a lock, the newest first: limit of them
// (1 to 1000; 0: 100) with tokens below before (0: from the newest).
func (r *Repo) History(ctx context.Context, lock string, limit int, before int64) ([]Tenure, error) {
	n, err := checkLimit(limit)
	if err == nil && before < 0 {
		err = errBefore
	}
	if err = cmp.Or(err, checkName(lock)); err != nil {
		return nil, fmt.Errorf("lockrepo: history: %w", err)
	}
	return r.tenures(ctx, historySQL, lock, before, n)
}

// StaleClaims returns the leases that ended without a release, the latest end
// first: expired, taken over, or released by force. limit is 1 to 1000; 0: 100.
func (r *Repo) StaleClaims(ctx context.Context, limit int) ([]Tenure, error) {
	n, err := checkLimit(limit)
	if err != nil {
		return nil, fmt.Errorf("lockrepo: stale claims: %w", err)
	}
	return r.tenures(ctx, staleSQL, n)
}

func (r *Repo) tenures(ctx context.Context, sql string, args ...any) ([]Tenure, error) {
	out := []Tenure{}
	err := r.ask(ctx, query{sql, args, func(rows pgx.Rows) error {
		var t Tenure
		_, err := pgx.ForEachRow(rows, t.dest(), func() error {
			c := t
			c.utc()
			out = append(out, c)
			return nil
		})
		return err
	}})
	if err != nil {
		return nil, fmt.Errorf("lockrepo: history: %w", err)
	}
	return out, nil
}

func (t *Tenure) dest() []any {
	return []any{
		&t.Lock, &t.Token, &t.Holder, &t.AcquiredAt, &t.EndedAt, &t.How, &t.Successor, &t.Refusals, &t.Beats,
		(*time.Duration)(&t.LongestGap), &t.Key, &t.KeyName, &t.RequestID, &t.SuccessorHolder, &t.SuccessorAt,
	}
}

// utc also copies what the next row would overwrite.
func (t *Tenure) utc() {
	t.AcquiredAt, t.SuccessorAt, t.EndedAt = inUTC(t.AcquiredAt), inUTC(t.SuccessorAt), t.EndedAt.UTC()
	if t.Successor != nil {
		s := *t.Successor
		t.Successor = &s
	}
}

// RefusalFilter chooses refusals. The zero RefusalFilter means the latest 100.
type RefusalFilter struct {
	Lock   string // empty: of all locks
	Kind   string // refused or passed; empty: both
	Limit  int    // 1 to 1000; 0: 100
	Before int64  // ids below this one: the last of the page before; 0: from the newest
}

// $1 lock, $2 before, $3 limit; with ofKind also $4, whether it passed.
const (
	refusalsSQL = `
select id, at, coalesce(lock, ''), token, coalesce(current, 0), coalesce(holder, ''), late_by,
       coalesce(target, ''), coalesce(statement, ''), passed
  from pawl.refusals where ($1::text = '' or lock = $1::text) and ($2::bigint = 0 or id < $2::bigint)`
	ofKind      = ` and passed = $4::bool`
	newestFirst = ` order by id desc limit $3::int`
)

// Refusals returns the writes that the fence turned away, and those that a
// table protected in log mode let pass, the newest first.
func (r *Repo) Refusals(ctx context.Context, f RefusalFilter) ([]Refusal, error) {
	n, err := checkLimit(f.Limit)
	switch {
	case err != nil:
	case f.Before < 0:
		err = errBefore
	case f.Kind != "" && f.Kind != Refused && f.Kind != Passed:
		err = badInput("kind %q does not exist: use %s or %s, or leave it empty for both", f.Kind, Refused, Passed)
	}
	if err != nil {
		return nil, fmt.Errorf("lockrepo: refusals: %w", err)
	}
	sql, args := refusalsSQL+newestFirst, []any{f.Lock, f.Before, n}
	if f.Kind != "" {
		sql, args = refusalsSQL+ofKind+newestFirst, append(args, f.Kind == Passed)
	}
	var out []Refusal
	err = r.ask(ctx, query{sql, args, func(rows pgx.Rows) (err error) {
		out, err = pgx.CollectRows(rows, refusal)
		return err
	}})
	if err != nil {
		return nil, fmt.Errorf("lockrepo: refusals: %w", err)
	}
	return out, nil
}

func refusal(row pgx.CollectableRow) (f Refusal, err error) {
	var late *time.Duration
	err = row.Scan(&f.ID, &f.At, &f.Lock, &f.Token, &f.Current, &f.Holder, &late, &f.Target, &f.Statement, &f.Passed)
	if f.At = f.At.UTC(); late != nil {
		s := Seconds(*late)
		f.LateBy = &s
	}
	return f, err
}
