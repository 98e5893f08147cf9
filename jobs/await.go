package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Owes lists what a job that isn't stored yet would owe between two keys, both included, up to now: as [BackfillList] does
// of one that is.
func (j Job) Owes(from, to string, now time.Time) ([]BackfillPeriod, error) {
	j, err := j.withDefaults()
	if err != nil {
		return nil, err
	}
	p := planned{definition: j.definition(""), now: now}
	if p.schedule, err = p.definition.parse(); err != nil {
		return nil, err
	}
	list, err := p.between(from, to)
	for i := range list {
		list[i].Owe = true
	}
	return list, err
}

// States counts the last revisions of some periods of a job by their state: open, running, complete, dead and so on. Those
// without a row are not counted.
func (h *History) States(ctx context.Context, job string, keys []string) (map[string]int, error) {
	const sql = `
select p.state, count(*) from unnest($2::text[]) k (key)
 cross join lateral (select state from pawl.periods where job = $1 and key = k.key order by revision desc limit 1) p group by p.state`
	states := map[string]int{}
	err := h.read(ctx, "states", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, job, keys)
		if err != nil {
			return err
		}
		var state string
		var n int
		_, err = pgx.ForEachRow(rows, []any{&state, &n}, func() error { states[state] = n; return nil })
		return err
	})
	return states, err
}
