package lockrepo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// AuditEntry is what somebody did. Times are UTC by the database's clock.
type AuditEntry struct {
	ID       int64           `json:"id"` // for AuditFilter.Before
	At       time.Time       `json:"at"`
	Actor    string          `json:"actor"`
	Action   string          `json:"action"`
	Lock     string          `json:"lock"`  // empty: it wasn't about a lock; so the next four
	Token    *int64          `json:"token"` // of the lease that it was about
	Job      string          `json:"job"`
	Period   string          `json:"period"`
	Reason   string          `json:"reason"`
	Approver string          `json:"approver"` // the second person, empty if it needed none
	Detail   json.RawMessage `json:"detail"`   // an object, or null
}

// AuditFilter chooses entries that match all that is given. The zero
// AuditFilter means the latest 100.
type AuditFilter struct {
	Actor, Action, Lock, Job string    // as they were written, whole
	From, To                 time.Time // from From up to To; zero: no bound
	Before                   int64     // ids below this one: the last of the page before; 0: from the newest
	Limit                    int       // 1 to 1000; 0: 100
}

const auditSQL = `
select id, at, actor, action, coalesce(lock, ''), token, coalesce(job, ''), coalesce(period, ''), coalesce(reason, ''), coalesce(approver, ''), detail
  from pawl.audit`

// Audit returns what people did, the newest first.
func (r *Repo) Audit(ctx context.Context, f AuditFilter) ([]AuditEntry, error) {
	sql, args, err := f.sql()
	if err != nil {
		return nil, fmt.Errorf("lockrepo: audit: %w", err)
	}
	out := []AuditEntry{}
	err = r.ask(ctx, query{sql, args, func(rows pgx.Rows) (err error) {
		out, err = pgx.AppendRows(out, rows, auditEntry)
		return err
	}})
	if err != nil {
		return nil, fmt.Errorf("lockrepo: audit: %w", err)
	}
	return out, nil
}

func (f AuditFilter) sql() (sql string, args []any, err error) {
	n, err := checkLimit(f.Limit)
	if err == nil && f.Before < 0 {
		err = errBefore
	}
	err = cmp.Or(err, checkTimes(f.From, f.To), checkTexts("actor", f.Actor, "action", f.Action, "lock", f.Lock, "job", f.Job))
	if err != nil {
		return "", nil, err
	}
	w := newWalk("pawl.audit", f.Before)
	w.text("lock", f.Lock) // that which is said first leads: of it there are the fewest
	w.text("job", f.Job)
	w.text("actor", f.Actor)
	w.text("action", f.Action)
	w.between(f.From, f.To)
	limit := w.arg(n, "int")
	return auditSQL + w.sql(limit), w.args, nil
}

func auditEntry(row pgx.CollectableRow) (e AuditEntry, err error) {
	err = row.Scan(&e.ID, &e.At, &e.Actor, &e.Action, &e.Lock, &e.Token, &e.Job, &e.Period, &e.Reason, &e.Approver, &e.Detail)
	e.At = e.At.UTC()
	return e, err
}

// Each step finds the next action in the index: there are few, with very many entries each.
const actionsSQL = `
with recursive a (action) as (
    (select action from pawl.audit order by action limit 1)
  union all
    select (select n.action from pawl.audit n where n.action > a.action order by n.action limit 1) from a where a.action is not null)
select action from a where action is not null order by action limit 1000`

// AuditActions returns the actions that the audit log has entries of, by name.
func (r *Repo) AuditActions(ctx context.Context) ([]string, error) {
	out := []string{}
	err := r.ask(ctx, query{actionsSQL, nil, func(rows pgx.Rows) (err error) {
		out, err = pgx.AppendRows(out, rows, pgx.RowTo[string])
		return err
	}})
	if err != nil {
		return nil, fmt.Errorf("lockrepo: audit actions: %w", err)
	}
	return out, nil
}
