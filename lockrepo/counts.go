package lockrepo

import (
	"context"
	"fmt"
)

// countCap is where counting ends: beyond it a number is only "more than
// 10,000", since counting millions costs more than it tells.
const countCap = 10_001

// $1 cap. The held and the stale are found among those that are leased, of which there are few. The order keeps them to their index.
const lockCountsSQL = `
select (select count(*) from (select from pawl.locks where grant_id is not null and expires_at > (select clock_timestamp()) order by name limit $1::int) h),
       (select count(*) from (select from pawl.locks where grant_id is not null and expires_at <= (select clock_timestamp()) order by name limit $1::int) s),
       (select count(*) from (select from pawl.locks order by name limit $1::int) l)`

// LockCounts returns how many locks are held, how many have a lease that
// expired and that nobody has taken, and how many there are. 10,001 means
// 10,001 or more.
func (r *Repo) LockCounts(ctx context.Context) (held, stale, total int, err error) {
	if err = r.ask(ctx, query{lockCountsSQL, []any{countCap}, single(&held, &stale, &total)}); err != nil {
		return 0, 0, 0, fmt.Errorf("lockrepo: lock counts: %w", err)
	}
	return held, stale, total, nil
}

// $1 lock, $2 cap.
const tenureCountsSQL = `
select (select count(*) from (select from pawl.tenures where lock = $1::text order by token limit $2::int) t),
       (select count(*) from pawl.locks where name = $1::text and grant_id is not null)`

// TenureCounts returns how many leases of a lock have ended, 10,001 meaning
// that many or more, and how many have not: 1 or 0.
func (r *Repo) TenureCounts(ctx context.Context, lock string) (ended, live int, err error) {
	if err = checkName(lock); err == nil {
		err = r.ask(ctx, query{tenureCountsSQL, []any{lock, countCap}, single(&ended, &live)})
	}
	if err != nil {
		return 0, 0, fmt.Errorf("lockrepo: tenure counts: %w", err)
	}
	return ended, live, nil
}
