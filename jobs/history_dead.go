package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"
)

const deadSQL = `
select ` + periodColumns + ` from pawl.periods
 where job = @job and ` + endedBadly + notShards + ` and state = 'dead' order by scheduled_at, key limit @limit`

// Dead lists a job's dead periods, the oldest first: in that order they are retried. Limit is 1 to 1000; zero is 100.
func (h *History) Dead(ctx context.Context, job string, limit int) ([]PeriodRecord, error) {
	periods, err := collect[PeriodRecord](ctx, h, "dead periods", deadSQL, pgx.NamedArgs{"job": job, "limit": limited(limit)})
	for i := range periods {
		periods[i].utc()
	}
	return periods, err
}

// MostRetried is how many dead periods one act retries at most: each is a transaction and a row of the audit.
const MostRetried = 100

// Seen is what a person who looks at the period sees, so that nothing else is done to it.
func (p PeriodRecord) Seen() Seen {
	s := Seen{Revision: p.Revision, State: p.State}
	if p.Token != nil {
		s.Token = *p.Token
	}
	return s
}
