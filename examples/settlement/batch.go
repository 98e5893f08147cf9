package settlement

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
)

// batch is what one statement has settled.
type batch struct {
	merchants, total int64  // in this batch; in all
	last             string // merchant
	rows, written    int64  // net rows computed; of them written
}

// The database adds up: a batch costs the worker one row, however many
// payments it has. An old holder's statement finds a newer mark and writes
// nothing, with a guard or without; rows are taken in the order of the key, so
// that two holders can't deadlock. Merchant by merchant, since a join would
// read the whole day for each batch.
const batchSQL = `
with batch as materialized (
  select id, fee_bps from $schema.merchant where id > $1 and ($8::int = 0 or (hashtextextended(id, 0) & 2147483647) % $8 = $9::int) order by id limit $2
), net as materialized (
  select b.id as merchant, n.* from batch b cross join lateral (
    select currency, count(*) as payments,
           coalesce(sum(amount_minor) filter (where kind = 'sale'), 0)::bigint as gross,
           coalesce(sum(amount_minor) filter (where kind = 'refund'), 0)::bigint as refunds,
           coalesce(sum(amount_minor) filter (where kind = 'chargeback'), 0)::bigint as chargebacks,
           coalesce(sum($schema.fee(amount_minor, b.fee_bps)) filter (where kind = 'sale'), 0)::bigint as fees
      from $schema.payments where merchant = b.id and at >= $3 and at < $4 group by currency) n
), written as (
  insert into $schema.settlement (merchant, day, currency, gross, refunds, chargebacks, fees, net, payments, last_token, run)
  select merchant, $5::date, currency, gross, refunds, chargebacks, fees, gross - refunds - chargebacks - fees, payments, $6, $7
    from net order by merchant, currency
  on conflict (merchant, day, currency) do update
     set gross = excluded.gross, refunds = excluded.refunds, chargebacks = excluded.chargebacks, fees = excluded.fees,
         net = excluded.net, payments = excluded.payments, last_token = excluded.last_token, run = excluded.run,
         settled_at = clock_timestamp()
   where settlement.last_token < excluded.last_token
  returning 1
)
select (select count(*) from batch),
       (select count(*) from $schema.merchant where $8 = 0 or (hashtextextended(id, 0) & 2147483647) % $8 = $9),
       (select coalesce(max(id), '') from batch),
       (select count(*) from net), (select count(*) from written)`

// batch writes the net rows of the merchants after one. It fails when a row's
// mark refuses the token: a count of rows is all that tells a refused row from
// a written one.
func (s *Settlement) batch(ctx context.Context, tx pgx.Tx, tok fence.Token, d day, after string) (batch, error) {
	var b batch
	err := tx.QueryRow(ctx, s.sql(batchSQL), after, s.cfg.Batch, d.from, d.to, d.date, tok.Seq, d.run, d.shards, d.shard).
		Scan(&b.merchants, &b.total, &b.last, &b.rows, &b.written)
	if err != nil {
		return b, err
	}
	if b.written < b.rows {
		return b, s.refused(ctx, tx, tok, d, after, b)
	}
	return b, nil
}

const newestSQL = `
select coalesce(max(last_token), 0) from $schema.settlement where day = $1::date and merchant > $2 and merchant <= $3`

// refused says who is ahead: a newer token, which makes this writer an old
// holder, or this very token, which has then written the batch before.
func (s *Settlement) refused(ctx context.Context, tx pgx.Tx, tok fence.Token, d day, after string, b batch) error {
	var newest int64
	if err := tx.QueryRow(ctx, s.sql(newestSQL), d.date, after, b.last).Scan(&newest); err != nil {
		return err
	}
	if newest > tok.Seq {
		return &fence.StaleError{
			Token: tok, Current: newest, Code: fence.CodeStale,
			Target: s.cfg.Schema + ".settlement/" + d.date,
		}
	}
	return fmt.Errorf("%d of %d rows after merchant %q already carry token %s: a batch is written once per token",
		b.rows-b.written, b.rows, after, tok)
}
