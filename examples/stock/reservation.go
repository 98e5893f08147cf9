package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
)

const (
	ttl   = time.Second // of all leases here
	cents = 1999

	reserveSQL = `update items set quantity = quantity - 1, version = version + 1 where id = $1 and quantity > 0`

	// Each change says from which state: what was done before is not done again.
	paidSQL    = `update orders set state = 'paid' where id = $1 and state = 'reserved'`
	releaseSQL = `
with o as (update orders set state = 'released' where id = $1 and state = 'reserved' returning item)
update items i set quantity = quantity + 1, version = version + 1 from o where i.id = o.item`
)

// payment is the message that goes to the bank.
type payment struct {
	Order uuid.UUID `json:"order"`
	Cents int       `json:"cents"`
}

// reserve takes a unit off the shelf, notes the order and puts its payment into the outbox, all in one transaction: no unit
// without an order, no order without a payment under way.
func reserve(ctx context.Context, pool *pgxpool.Pool, order uuid.UUID, item string) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, reserveSQL, item)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, orderSQL, order, item, "reserved"); err != nil {
			return err
		}
		_, err = jobs.Enqueue(ctx, tx, jobs.Message{Outbox: "payments", Key: order.String(), Body: payment{order, cents}})
		return err
	})
}

// payments is the outbox: it charges each order, and then the order is paid, or its unit goes back. A worker may die between the
// two: its successor charges with the same key, which the bank answers as it did before.
func payments(pool *pgxpool.Pool) jobs.Job {
	j := jobs.Job{Name: "payments", TTL: ttl, Grace: ttl, RetryDelay: 100 * time.Millisecond, RetryMaxDelay: time.Second, MaxRetries: 100}
	return jobs.Outbox(j, func(ctx context.Context, run *jobs.Run, d jobs.Dispatch) error {
		var p payment
		if err := json.Unmarshal(d.Body, &p); err != nil {
			return err
		}
		accepted, err := charge(ctx, pool, d.IdempotencyKey, p)
		if err != nil {
			return err
		}
		next := paidSQL
		if !accepted {
			next = releaseSQL // compensation
		}
		return run.Complete(context.WithoutCancel(ctx), func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, next, p.Order)
			return err
		})
	})
}

// The bank declines one in four, and keeps keys: asked again it says the same and charges nothing.
const chargeSQL = `
with new as (
  insert into bank (key, "order", cents, accepted) values ($1, $2::uuid, $3, hashtext($2::uuid::text) & 3 <> 0) on conflict (key) do nothing returning accepted
)
select accepted from new union all select accepted from bank where key = $1 limit 1`

// charge takes its time, as banks do.
func charge(ctx context.Context, pool *pgxpool.Pool, key string, p payment) (accepted bool, err error) {
	wait(ctx, 50*time.Millisecond)
	err = pool.QueryRow(ctx, chargeSQL, key, p.Order, p.Cents).Scan(&accepted)
	if err == nil {
		wait(ctx, 50*time.Millisecond)
	}
	return accepted, err
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
