package settlement

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
)

// ControlError says that a day's settlement doesn't account for its payments.
// Nothing is completed. Amounts are in minor units.
type ControlError struct {
	Day, Currency string
	// In is sales minus refunds minus chargebacks; Out is the sum of the net
	// rows. In = Out + Fees holds when all is well.
	In, Out, Fees int64
	// Counted payments came in, Settled ones are in the net rows.
	Counted, Settled int64
}

// Error names the figures and what to do.
func (e *ControlError) Error() string {
	return fmt.Sprintf("settlement: control totals of %s in %s differ: in %d from %d payments, out %d plus fees %d from %d payments, "+
		"%d unaccounted for: look for payments that came after their batch or whose merchant is unknown",
		e.Day, e.Currency, e.In, e.Counted, e.Out, e.Fees, e.Settled, e.In-e.Out-e.Fees)
}

// Straight from the payments, without the merchants: one of an unknown
// merchant is counted here and in no batch.
const controlSQL = `
select currency, coalesce(p.amount, 0), coalesce(p.n, 0), coalesce(s.net, 0), coalesce(s.fees, 0), coalesce(s.n, 0)
  from (select currency, count(*) as n, sum(case kind when 'sale' then amount_minor else -amount_minor end)::bigint as amount
          from $schema.payments where at >= $1 and at < $2 group by currency) p
  full join
       (select currency, sum(payments)::bigint as n, sum(net)::bigint as net, sum(fees)::bigint as fees
          from $schema.settlement where day = $3::date group by currency) s using (currency)
 order by currency`

// control compares what came in with what goes out, for each currency: sums of
// several currencies could cancel out.
func (s *Settlement) control(ctx context.Context, tx pgx.Tx, log *slog.Logger, d day) error {
	rows, err := tx.Query(ctx, s.sql(controlSQL), d.from, d.to, d.date)
	if err != nil {
		return err
	}
	var payments int64
	c := ControlError{Day: d.date}
	_, err = pgx.ForEachRow(rows, []any{&c.Currency, &c.In, &c.Counted, &c.Out, &c.Fees, &c.Settled}, func() error {
		payments += c.Settled
		if c.In != c.Out+c.Fees || c.Counted != c.Settled {
			wrong := c
			return &wrong
		}
		return nil
	})
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "control totals agree", "day", d.date, "payments", payments)
	return nil
}
