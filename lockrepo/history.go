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
       (select count(*) from (select from pawl.refusals f where f.lock = t.lock and f.token = t.token and not f.passed limit 10001) f), t.beats, t.longest_gap,
       coalesce(t.key, ''), coalesce(k.name, t.key, ''), coalesce(t.request_id, ''), '', null::timestamptz
  from pawl.tenures t left join pawl.keys k on k.id = t.key
 where t.lock = $1 and ($2::bigint = 0 or t.token < $2::bigint)
 order by t.token desc limit $3::int`

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
