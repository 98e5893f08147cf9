package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// PeriodCounts counts, by job and state, the periods that somebody may want to see to: open, running, held, dead. A
// job or state without any is absent.
func (h *History) PeriodCounts(ctx context.Context) (map[string]map[string]int64, error) {
	// Each part comes from an index of its own.
	const sql = `
select job, state, count(*) from (
  select job, state from pawl.periods where ` + unfinished + notShards + `
  union all select job, state from pawl.periods where ` + waiting + ` and ended_at is null
  union all select job, state from pawl.periods where ` + endedBadly + notShards + ` and state = 'dead') p
 group by job, state`
	counts := map[string]map[string]int64{}
	err := h.read(ctx, "period counts", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql)
		if err != nil {
			return err
		}
		var job, state string
		var n int64
		_, err = pgx.ForEachRow(rows, []any{&job, &state, &n}, func() error {
			if counts[job] == nil {
				counts[job] = map[string]int64{}
			}
			counts[job][state] = n
			return nil
		})
		return err
	})
	return counts, err
}
