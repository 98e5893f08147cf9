package settlement

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Total compares what is settled with what the payments say. Amounts are in
// minor units.
type Total struct {
	// Payments that there are.
	Payments int64 `json:"payments"`
	// Settled is the net amount of the settlement's rows, Fees their fees.
	Settled int64 `json:"settled_minor"`
	Fees    int64 `json:"fees_minor"`
	// Difference sums, over all rows, by how much a row's worst figure is off.
	// Errors can't cancel out.
	Difference int64 `json:"difference_minor"`
	// Duplicates are payments that were settled more than once, Missing those
	// that weren't settled.
	Duplicates int64 `json:"duplicates"`
	Missing    int64 `json:"missing"`
}

// Totals is a Total over everything: its amounts add up minor units of several
// currencies, which makes them check sums, not money. Currencies has the
// money.
type Totals struct {
	Total
	Currencies map[string]Total `json:"currencies"`
}

// OK says whether everything is settled, once and to the last minor unit.
func (t Totals) OK() bool { return t.Difference == 0 && t.Duplicates == 0 && t.Missing == 0 }

// It shares nothing with the batches: no fee function, no days of periods, and
// decimal arithmetic, where 2 × round(x / 2) of a tie is the even neighbour.
// Multiplied by 0.0001, since a division would round at 16 digits.
const totalsSQL = `
with due as (
  select p.merchant, (p.at at time zone 'UTC')::date as day, p.currency, count(*) as payments,
         sum(case p.kind when 'sale' then p.amount_minor else 0 end) as gross,
         sum(case p.kind when 'refund' then p.amount_minor else 0 end) as refunds,
         sum(case p.kind when 'chargeback' then p.amount_minor else 0 end) as chargebacks,
         sum(case when p.kind <> 'sale' then 0 when abs(x - trunc(x)) = 0.5 then 2 * round(x / 2) else round(x) end) as fees
    from $schema.payments p left join $schema.merchant m on m.id = p.merchant
   cross join lateral (select coalesce(p.amount_minor::numeric * m.fee_bps * 0.0001, 0) as x) f
   group by 1, 2, 3
)
select currency, coalesce(sum(d.payments), 0)::bigint, coalesce(sum(s.net), 0)::bigint, coalesce(sum(s.fees), 0)::bigint,
       sum(greatest(abs(coalesce(d.gross, 0) - coalesce(s.gross, 0)), abs(coalesce(d.refunds, 0) - coalesce(s.refunds, 0)),
                    abs(coalesce(d.chargebacks, 0) - coalesce(s.chargebacks, 0)), abs(coalesce(d.fees, 0) - coalesce(s.fees, 0)),
                    abs(coalesce(d.gross - d.refunds - d.chargebacks - d.fees, 0) - coalesce(s.net, 0))))::bigint,
       sum(greatest(coalesce(s.payments, 0) - coalesce(d.payments, 0), 0))::bigint,
       sum(greatest(coalesce(d.payments, 0) - coalesce(s.payments, 0), 0))::bigint
  from due d full join $schema.settlement s using (merchant, day, currency)
 group by currency order by currency`

// Totals compares the settlement of all days with the payments, by a statement
// that shares nothing with the one that settled them. It reads every payment.
func (s *Settlement) Totals(ctx context.Context, pool *pgxpool.Pool) (Totals, error) {
	all := Totals{Currencies: map[string]Total{}}
	rows, err := pool.Query(ctx, s.sql(totalsSQL))
	if err != nil {
		return all, fmt.Errorf("settlement: totals: %w", err)
	}
	var currency string
	var t Total
	into := []any{&currency, &t.Payments, &t.Settled, &t.Fees, &t.Difference, &t.Duplicates, &t.Missing}
	_, err = pgx.ForEachRow(rows, into, func() error {
		all.Currencies[currency] = t
		all.add(t)
		return nil
	})
	if err != nil {
		return all, fmt.Errorf("settlement: totals: %w", err)
	}
	return all, nil
}

func (t *Totals) add(o Total) {
	t.Payments += o.Payments
	t.Settled += o.Settled
	t.Fees += o.Fees
	t.Difference += o.Difference
	t.Duplicates += o.Duplicates
	t.Missing += o.Missing
}
