package jobs

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Latest returns a period's last revision, or [ErrUnknownPeriod].
func (h *History) Latest(ctx context.Context, job, key string) (PeriodRecord, error) {
	const sql = `
select ` + periodColumns + `
  from pawl.periods where job = @job and key = @key order by revision desc limit 1`
	found, err := collect[PeriodRecord](ctx, h, "period", sql, pgx.NamedArgs{"job": job, "key": key})
	switch {
	case err != nil:
		return PeriodRecord{}, err
	case len(found) == 0:
		return PeriodRecord{}, fmt.Errorf("%w %s %s: list them with: pawl job history %s --periods", ErrUnknownPeriod, job, key, job)
	}
	found[0].utc()
	return found[0], nil
}

// Current is the key of the period that [Trigger] would owe now, empty for a @manual job: that gets a fresh one each time. It
// returns [ErrUnknownJob].
func (h *History) Current(ctx context.Context, job string) (key string, err error) {
	const sql = `
select ` + jobColumns + `, definition, clock_timestamp() as now from pawl.schedules where job = @job and retired_at is null`
	err = h.read(ctx, "job", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := h.jobRows(ctx, tx, sql, pgx.NamedArgs{"job": job})
		switch {
		case err != nil:
			return err
		case len(rows) == 0:
			return fmt.Errorf("%w %q: it is retired, or there is none of that name", ErrUnknownJob, job)
		case rows[0].planErr != nil:
			return rows[0].planErr
		case !rows[0].schedule.Manual():
			key = current(rows[0].schedule, rows[0].Now).Key
		}
		return nil
	})
	return key, err
}
