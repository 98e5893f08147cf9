package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
)

// result is what the example has come to.
type result struct {
	OK        bool   `json:"ok"`
	Seed      uint64 `json:"seed"`
	Rounds    int    `json:"rounds"`
	Owed      int64  `json:"owed_cents"`
	Ours      int64  `json:"our_cents"`
	Provider  int64  `json:"provider_cents"`
	Payments  int    `json:"payments"`     // in the provider's ledger
	Twice     int    `json:"paid_twice"`   // merchants and days that it has more than once
	Differ    int    `json:"differ"`       // merchants and days of which the two books differ
	Unmatched int    `json:"unmatched"`    // what the reconciliation has found
	Open      int    `json:"open_effects"` // intended or uncertain
	Failed    int    `json:"declined"`     // tries that were declined for good
	Lost      int    `json:"lost_replies"`
	Slow      int    `json:"slow_replies"`
	Replayed  int    `json:"replayed"` // requests with a key that the provider knew
	Kills     int    `json:"kills"`
	Pauses    int    `json:"pauses"`
	Takeovers int    `json:"takeovers"`
	Refusals  int    `json:"refusals"`
}

// Right tells whether the books agree.
func (r result) Right() bool { return r.OK }

func (r result) String() string {
	verdict := "every merchant was paid once, to the cent"
	if !r.OK {
		verdict = fmt.Sprintf("NOT RIGHT: %d paid twice, %d differ, %d unmatched", r.Twice, r.Differ, r.Unmatched)
	}
	return fmt.Sprintf("%s\n  owed %d.%02d, our books %d.%02d, the provider's %d.%02d in %d payments\n  %d kills, %d pauses, %d takeovers, %d refusals; %d replies lost, %d requests replayed, %d declined (seed %d)",
		verdict, r.Owed/100, r.Owed%100, r.Ours/100, r.Ours%100, r.Provider/100, r.Provider%100, r.Payments,
		r.Kills, r.Pauses, r.Takeovers, r.Refusals, r.Lost, r.Replayed, r.Failed, r.Seed)
}

const (
	booksSQL = `
select o.day, o.merchant, o.cents, coalesce(p.cents, 0) from payout.owed o left join payout.paid p on p.day = o.day and p.merchant = o.merchant`

	factsSQL = `
select (select count(*) from pawl.effects where state in ('intended', 'uncertain')), (select count(*) from pawl.effects where state = 'failed'),
       (select count(*) from pawl.tenures where lock = $1 and how = 'taken_over'), (select count(*) from pawl.refusals where lock = $1)`
)

// compare reads both books.
func (r *result) compare(ctx context.Context, pool *pgxpool.Pool, theirs []payment) error {
	type who struct{ day, merchant string }
	provider, times := map[who]int64{}, map[who]int{}
	for _, x := range theirs {
		w := who{x.Day, x.Merchant}
		provider[w] += x.Cents
		times[w]++
		r.Provider += x.Cents
		if times[w] == 2 {
			r.Twice++
		}
	}
	r.Payments = len(theirs)
	rows, err := pool.Query(ctx, booksSQL)
	if err != nil {
		return err
	}
	var w who
	var owed, ours int64
	_, err = pgx.ForEachRow(rows, []any{&w.day, &w.merchant, &owed, &ours}, func() error {
		r.Owed, r.Ours = r.Owed+owed, r.Ours+ours
		if owed != ours || ours != provider[w] {
			r.Differ++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := pool.QueryRow(ctx, factsSQL, "job:"+jobName).Scan(&r.Open, &r.Failed, &r.Takeovers, &r.Refusals); err != nil {
		return err
	}
	list, err := jobs.NewHistory(pool).Unmatched(ctx, jobName, 1000)
	r.Unmatched = len(list)
	r.OK = r.Owed == r.Ours && r.Ours == r.Provider && r.Twice+r.Differ+r.Unmatched+r.Open == 0
	return err
}
