package lockrepo

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// RefusalFilter chooses refusals that match all that is given. The zero
// RefusalFilter means the latest 100.
type RefusalFilter struct {
	Lock   string    // empty: of all locks
	Holder string    // the old holder, as it called itself; empty: of all
	Kind   string    // refused or passed; empty: both
	Since  time.Time // from then on; zero: all
	Limit  int       // 1 to 1000; 0: 100
	Before int64     // ids below this one: the last of the page before; 0: from the newest
}

const refusalsSQL = `
select id, at, coalesce(lock, ''), token, coalesce(current, 0), coalesce(holder, ''), late_by,
       coalesce(target, ''), coalesce(statement, ''), passed
  from pawl.refusals`

// Refusals returns the writes that the fence turned away, and those that a
// table protected in log mode let pass, the newest first.
func (r *Repo) Refusals(ctx context.Context, f RefusalFilter) ([]Refusal, error) {
	sql, args, err := f.sql()
	if err != nil {
		return nil, fmt.Errorf("lockrepo: refusals: %w", err)
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

func (f RefusalFilter) sql() (sql string, args []any, err error) {
	n, err := checkLimit(f.Limit)
	switch {
	case err != nil:
	case f.Before < 0:
		err = errBefore
	case f.Kind != "" && f.Kind != Refused && f.Kind != Passed:
		err = badInput("kind %q does not exist: use %s or %s, or leave it empty for both", f.Kind, Refused, Passed)
	}
	if err = cmp.Or(err, checkTexts("lock", f.Lock, "holder", f.Holder)); err != nil {
		return "", nil, err
	}
	w := newWalk("pawl.refusals", f.Before)
	w.text("holder", f.Holder) // first: it may have lost one of many locks, and a lock had many holders
	w.text("lock", f.Lock)
	w.between(f.Since, time.Time{})
	limit := w.arg(n, "int")
	of := func(passed string) string {
		k := *w
		k.cols, k.vals = append(k.cols[:len(k.cols):len(k.cols)], "passed"), append(k.vals[:len(k.vals):len(k.vals)], passed)
		return refusalsSQL + k.sql(limit)
	}
	switch {
	case f.Kind != "":
		return of(map[string]string{Refused: "false", Passed: "true"}[f.Kind]), w.args, nil
	case len(w.cols) == 0:
		return refusalsSQL + w.sql(limit), w.args, nil
	}
	return "select * from ((" + of("false") + ")\nunion all (" + of("true") + ")) f order by id desc limit " + limit, w.args, nil
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

// RefusalGroup is an old holder whose writes were refused.
type RefusalGroup struct {
	Lock   string    `json:"lock"`
	Holder string    `json:"holder"` // empty if not known
	Token  *int64    `json:"token"`  // nil if the writes came without any
	Count  int       `json:"count"`  // of those that were looked at
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
}

// $1 limit; around the newest that are counted.
const (
	groupsSQL = `
select coalesce(f.lock, ''), coalesce(f.holder, ''), f.token, count(*), min(f.at), max(f.at) from (`
	groupedSQL = `) f
 group by f.lock, f.holder, f.token order by max(f.at) desc, max(f.id) desc limit `
)

// RefusalGroups returns who had writes refused since then (zero: ever), the
// latest first. It looks at the newest 10,001 refusals at most: when their
// counts are that many in all, there may be more. limit is 1 to 1000; 0: 100.
func (r *Repo) RefusalGroups(ctx context.Context, since time.Time, limit int) ([]RefusalGroup, error) {
	n, err := checkLimit(limit)
	if err != nil {
		return nil, fmt.Errorf("lockrepo: refusal groups: %w", err)
	}
	sql, args := groups(since, n)
	out := []RefusalGroup{}
	err = r.ask(ctx, query{sql, args, func(rows pgx.Rows) (err error) {
		out, err = pgx.AppendRows(out, rows, func(row pgx.CollectableRow) (g RefusalGroup, err error) {
			err = row.Scan(&g.Lock, &g.Holder, &g.Token, &g.Count, &g.First, &g.Last)
			g.First, g.Last = g.First.UTC(), g.Last.UTC()
			return g, err
		})
		return err
	}})
	if err != nil {
		return nil, fmt.Errorf("lockrepo: refusal groups: %w", err)
	}
	return out, nil
}

func groups(since time.Time, limit int) (sql string, args []any) {
	w := newWalk("pawl.refusals", 0)
	w.cols, w.vals = []string{"passed"}, []string{"false"}
	w.between(since, time.Time{})
	most := w.arg(countCap, "int")
	return groupsSQL + "select id, at, lock, holder, token from pawl.refusals" + w.sql(most) + groupedSQL + w.arg(limit, "int"), w.args
}
