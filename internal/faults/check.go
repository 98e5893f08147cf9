package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
)

// OutOfOrderSQL counts writes that committed after one with a higher token.
const OutOfOrderSQL = `
select count(*) from (
  select token, max(token) over (partition by lock order by pg_xact_commit_timestamp(xmin), token rows between unbounded preceding and 1 preceding) as before
    from witness) x where token < before`

// CompleteSQL counts the periods that are complete.
const CompleteSQL = `select count(*) from pawl.periods where state = 'complete'`

// Violations says what is wrong once all periods are complete: nothing, if the protocol holds.
func (l Ledger) Violations(ctx context.Context, pool *pgxpool.Pool) (found []string, err error) {
	checks := map[string]string{
		"periods that are not complete":     `select count(*) from pawl.periods where state <> 'complete' and scheduled_at < now()`,
		"periods missing":                   fmt.Sprintf(`select %d - count(*) from pawl.periods`, l.Owed()),
		"periods with two completions":      `select count(*) from (select from done group by job, key having count(*) > 1) x`,
		"periods without a completion":      `select count(*) from pawl.periods p where not exists (select from done d where d.job = p.job and d.key = p.key)`,
		"ledger rows with a wrong sum":      `select count(*) from ledger where sum <> 6`,
		"ledger rows missing":               fmt.Sprintf(`select %d - count(*) from ledger`, l.Owed()),
		"batches written twice":             `select count(*) from (select from witness where batch > 0 group by lock, key, batch having count(*) > 1) x`,
		"batches missing":                   fmt.Sprintf(`select %d - count(distinct (lock, key, batch)) from witness where batch > 0`, l.Owed()*batches),
		"writes after a higher token":       OutOfOrderSQL,
		"runs that are complete and twice":  `select count(*) from (select from pawl.runs where state = 'complete' group by job, key having count(*) > 1) x`,
		"leases of one lock that overlap":   `select count(*) from pawl.tenures a join pawl.tenures b on a.lock = b.lock and a.token < b.token and a.ended_at > b.acquired_at`,
		"runs without a tenure":             `select count(*) from pawl.runs r where r.ended_at is not null and not exists (select from pawl.tenures t where t.grant_id = r.id)`,
		"witness rows with an unknown lock": `select count(*) from witness w where not exists (select from pawl.tenures t where t.lock = w.lock and t.token = w.token)`,
	}
	for _, what := range slices.Sorted(maps.Keys(checks)) {
		var n int
		if err := pool.QueryRow(ctx, checks[what]).Scan(&n); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		if n != 0 {
			found = append(found, fmt.Sprintf("%d %s", n, what))
		}
	}
	return found, nil
}

// deliberateSQL is a write with a token lower than one that has written before.
const deliberateSQL = `insert into witness select lock, 'x', 0, min(token) - 1 from witness group by lock limit 1`

// Deliberate commits a violation of the order of tokens and counts how often it is found, which must be once: a check
// that finds nothing must be able to find something.
func (l Ledger) Deliberate(ctx context.Context, pool *pgxpool.Pool) (found int, err error) {
	if _, err := pool.Exec(ctx, deliberateSQL); err != nil {
		return 0, err
	}
	err = pool.QueryRow(ctx, OutOfOrderSQL).Scan(&found)
	return found, err
}

// Seen is how much has gone wrong: without it a test has shown nothing.
type Seen struct{ Takeovers, Refusals, Runs int }

const seenSQL = `
select (select count(*) from pawl.tenures where how = 'taken_over'), (select count(*) from pawl.refusals), (select count(*) from pawl.runs)`

// Seen counts takeovers, refusals and runs so far.
func (l Ledger) Seen(ctx context.Context, pool *pgxpool.Pool) (s Seen, err error) {
	err = pool.QueryRow(ctx, seenSQL).Scan(&s.Takeovers, &s.Refusals, &s.Runs)
	return s, err
}
