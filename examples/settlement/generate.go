package settlement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Input says which payments Generate makes. The same Input makes the same
// payments, on every machine.
type Input struct {
	// Payments in all, spread evenly over the days. 0: 200,000.
	Payments int
	// Days that end with Last. 0: 5.
	Days int
	// Last is a time on the last day, in UTC. Zero: yesterday.
	Last time.Time
	// Merchants share the payments unevenly. 0: 200.
	Merchants int
	// Progress, when set, is told after each day how many payments are made.
	Progress func(done, total int)
}

func (in Input) withDefaults() (Input, error) {
	in.Payments = cmp.Or(in.Payments, 200_000)
	in.Days = cmp.Or(in.Days, 5)
	in.Merchants = cmp.Or(in.Merchants, 200)
	switch {
	case in.Payments < 0:
		return in, fmt.Errorf("settlement: Payments is %d: give 1 or more", in.Payments)
	case in.Days < 0:
		return in, fmt.Errorf("settlement: Days is %d: give 1 or more", in.Days)
	case in.Merchants < 0 || in.Merchants > 9999:
		return in, fmt.Errorf("settlement: Merchants is %d: give 1 to 9999", in.Merchants)
	}
	if in.Last.IsZero() {
		in.Last = time.Now().AddDate(0, 0, -1)
	}
	in.Last = in.Last.UTC().Truncate(24 * time.Hour)
	if in.Progress == nil {
		in.Progress = func(int, int) {}
	}
	return in, nil
}

// Generate replaces what is in the tables by generated payments: sales with a
// few refunds and chargebacks, in currencies with and without decimals. Each
// day is one statement, so that neither side holds more than a page of them in
// memory. It needs a schema that Create has made.
func (s *Settlement) Generate(ctx context.Context, pool *pgxpool.Pool, in Input) error {
	in, err := in.withDefaults()
	if err != nil {
		return err
	}
	if err := s.generateMerchants(ctx, pool, in.Merchants); err != nil {
		return err
	}
	for d, made := 0, 0; d < in.Days; d++ {
		n := (in.Payments - made) / (in.Days - d)
		day := in.Last.AddDate(0, 0, d-in.Days+1)
		if err := s.generateDay(ctx, pool, day, made, n, in.Merchants); err != nil {
			return err
		}
		made += n
		in.Progress(made, in.Payments)
	}
	// So that the first run already finds statistics, and the BRIN index its summaries.
	if _, err := pool.Exec(ctx, s.sql("vacuum (analyze) $schema.merchant, $schema.payments")); err != nil {
		return fmt.Errorf("settlement: generate: %w", err)
	}
	return nil
}

const emptySQL = `truncate $schema.payments, $schema.settlement, $schema.merchant`

const merchantsSQL = `
insert into $schema.merchant (id, fee_bps)
select 'm' || lpad(i::text, 4, '0'), 25 + (hashint8extended(i, 1) & 255) from generate_series(1, $1::int) i`

func (s *Settlement) generateMerchants(ctx context.Context, pool *pgxpool.Pool, n int) error {
	return s.exclusive(ctx, pool, "generate into", func(tx pgx.Tx, exists bool) error {
		if !exists {
			return errors.New("it doesn't exist: call Create first")
		}
		if _, err := tx.Exec(ctx, s.sql(emptySQL)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, s.sql(merchantsSQL), n)
		return err
	})
}

// Payments go to the merchants in turn, which makes those of one merchant and
// day lie next to each other on disk, where a batch reads them; the curve gives
// the last merchants seven times as many as the first. Everything else is bits
// of one hash. Seven payments in eight are in the merchant's own currency.
const daySQL = `
insert into $schema.payments (id, merchant, at, currency, kind, amount_minor)
select id, 'm' || lpad(merchant::text, 4, '0'), $3::timestamptz + (h >> 32 & 4194303) % 86400 * interval '1 second', currency,
       case when h & 127 = 0 then 'chargeback' when h & 127 < 8 then 'refund' else 'sale' end,
       (100 + (h >> 7 & 33554431) % 24900) * case currency when 'KRW' then 10 else 1 end
  from (select $1::bigint + i as id, 1 + floor(x * (1.75 - 0.75 * x) * $4::int)::int as merchant,
               hashint8extended($1::bigint + i, 0) as h
          from generate_series(1, $2::bigint) i cross join lateral (select (i - 1)::float8 / $2 as x) c) p
 cross join lateral (
       select (array['EUR', 'USD', 'JPY', 'GBP', 'KRW', 'CHF'])
              [1 + case when h >> 54 & 7 = 0 then h >> 57 & 63 else hashint8extended(merchant, 2) & 63 end % 6] as currency) c`

func (s *Settlement) generateDay(ctx context.Context, pool *pgxpool.Pool, day time.Time, first, n, merchants int) error {
	if _, err := pool.Exec(ctx, s.sql(daySQL), first, n, day, merchants); err != nil {
		return fmt.Errorf("settlement: generate %s: %w", day.Format(time.DateOnly), err)
	}
	return nil
}
