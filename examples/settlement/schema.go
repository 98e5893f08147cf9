package settlement

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Mark is the comment on a schema that Create has made. Drop and Generate
// touch no schema without it.
const Mark = "pawl demo"

// ErrNotMarked says that a schema of the configured name exists and is
// somebody else's.
var ErrNotMarked = errors.New("it wasn't made by pawl's demo: drop it yourself, or choose another schema")

// Payments come from elsewhere, so nothing ties their merchant to ours: the
// control totals find a payment of a merchant that isn't known. They are
// appended day by day, which makes the BRIN index on at both small and sharp.
const createSQL = `
create table if not exists $schema.merchant (
    id      text primary key check (id <> ''),
    fee_bps int not null check (fee_bps between 0 and 10000)
);
create table if not exists $schema.payments (
    id           bigint primary key,
    merchant     text not null,
    at           timestamptz not null,
    currency     text not null check (currency ~ '^[A-Z]{3}$'),
    kind         text not null check (kind in ('sale', 'refund', 'chargeback')),
    amount_minor bigint not null check (amount_minor >= 0)
);
create index if not exists payments_merchant on $schema.payments (merchant, at);
create index if not exists payments_at on $schema.payments using brin (at) with (pages_per_range = 32, autosummarize = on);
create table if not exists $schema.settlement (
    merchant    text not null,
    day         date not null,
    currency    text not null,
    gross       bigint not null,
    refunds     bigint not null,
    chargebacks bigint not null,
    fees        bigint not null,
    net         bigint not null check (net = gross - refunds - chargebacks - fees),
    payments    bigint not null check (payments > 0),
    last_token  bigint not null,
    run         uuid not null,
    settled_at  timestamptz not null default clock_timestamp(),
    primary key (merchant, day, currency)
);
create index if not exists settlement_day on $schema.settlement (day);

-- amount × bps / 10000, rounded half to even. One expression, so that it is inlined; split, so that it can't overflow.
create or replace function $schema.fee(amount bigint, bps int) returns bigint language sql immutable parallel safe as $$
  select amount / 10000 * bps + amount % 10000 * bps / 10000
       + case when amount % 10000 * bps % 10000 > 5000
                or amount % 10000 * bps % 10000 = 5000 and (amount / 10000 * bps + amount % 10000 * bps / 10000) % 2 <> 0 then 1
              when amount % 10000 * bps % 10000 < -5000
                or amount % 10000 * bps % 10000 = -5000 and (amount / 10000 * bps + amount % 10000 * bps / 10000) % 2 <> 0 then -1
              else 0 end
$$;
comment on schema $schema is '` + Mark + `'`

// Create makes the schema and its tables where they are absent, and marks the
// schema as the demo's. It may run in several processes at once. It returns
// ErrNotMarked when the schema exists without the mark, and touches nothing.
func (s *Settlement) Create(ctx context.Context, pool *pgxpool.Pool) error {
	return s.exclusive(ctx, pool, "create", func(tx pgx.Tx, exists bool) error {
		if !exists {
			if _, err := tx.Exec(ctx, s.sql("create schema $schema")); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, s.sql(createSQL))
		return err
	})
}

// Drop removes the schema with everything in it. It does nothing where there
// is none, and returns ErrNotMarked for one that Create hasn't made.
func (s *Settlement) Drop(ctx context.Context, pool *pgxpool.Pool) error {
	return s.exclusive(ctx, pool, "drop", func(tx pgx.Tx, exists bool) error {
		if !exists {
			return nil
		}
		_, err := tx.Exec(ctx, s.sql("drop schema $schema cascade"))
		return err
	})
}

const markSQL = `select coalesce(obj_description(oid, 'pg_namespace'), '') from pg_namespace where nspname = $1`

// exclusive runs fn in a transaction, one process at a time, on a schema that
// is absent or marked.
func (s *Settlement) exclusive(ctx context.Context, pool *pgxpool.Pool, what string, fn func(tx pgx.Tx, exists bool) error) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`, Mark+" "+s.cfg.Schema); err != nil {
			return err
		}
		exists, err := s.marked(ctx, tx)
		if err != nil {
			return err
		}
		return fn(tx, exists)
	})
	if err != nil {
		return fmt.Errorf("settlement: %s schema %q: %w", what, s.cfg.Schema, err)
	}
	return nil
}

// marked says whether the schema exists, and fails when it isn't the demo's.
func (s *Settlement) marked(ctx context.Context, tx pgx.Tx) (exists bool, err error) {
	// Postgres would cut a longer name, and then it might be another schema's.
	if len(s.cfg.Schema) > 63 {
		return false, errors.New("the name is longer than 63 bytes: choose a shorter one")
	}
	var comment string
	switch err := tx.QueryRow(ctx, markSQL, s.cfg.Schema).Scan(&comment); {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case comment != Mark:
		return true, ErrNotMarked
	}
	return true, nil
}
