package lockrepo

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Waiter is somebody who waits for a lock, in [Repo.AcquireWait]. A job's
// periods wait in their lane, not here. Times are UTC by the database's clock.
type Waiter struct {
	Holder string    `json:"holder"` // what it will call itself
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"` // when it counts as gone, unless it says again that it waits
}

// $1 lock, $2 limit.
const waitersSQL = `
select coalesce(holder, ''), since, until from pawl.waiters
 where lock = $1::text and until > (select clock_timestamp()) order by since, id limit $2::int`

// Waiters returns who waits for a lock, who came first being first: nobody is
// promised that it is granted in that order. limit is 1 to 1000; 0: 100.
func (r *Repo) Waiters(ctx context.Context, lock string, limit int) ([]Waiter, error) {
	n, err := checkLimit(limit)
	if err == nil {
		err = checkName(lock)
	}
	if err != nil {
		return nil, fmt.Errorf("lockrepo: waiters: %w", err)
	}
	out := []Waiter{}
	err = r.ask(ctx, query{waitersSQL, []any{lock, n}, func(rows pgx.Rows) (err error) {
		out, err = pgx.AppendRows(out, rows, func(row pgx.CollectableRow) (w Waiter, err error) {
			err = row.Scan(&w.Holder, &w.Since, &w.Until)
			w.Since, w.Until = w.Since.UTC(), w.Until.UTC()
			return w, err
		})
		return err
	}})
	if err != nil {
		return nil, fmt.Errorf("lockrepo: waiters: %w", err)
	}
	return out, nil
}
