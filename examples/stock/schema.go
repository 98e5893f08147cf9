package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// An item is sold in one way alone. stall has the buyer that is stopped at the worst moment.
const createSQL = `
create table items (id text primary key, way text not null, quantity int not null, units int not null, version int not null default 0);
create table orders (
    id    uuid primary key,
    item  text not null references items,
    state text not null check (state in ('sold', 'reserved', 'paid', 'released'))
);
create index orders_item on orders (item, state);
create table bank (key text primary key, "order" uuid not null, cents int not null, accepted boolean not null);
create table stall (one boolean primary key default true, pid int);
insert into stall default values;
insert into items values ('last-one', 'lock', 1, 1), ('shirts', 'condition', 0, 0), ('seats', 'reservation', 0, 0);`

func create(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, createSQL)
	return err
}

// More comes in before each fault, so that there is always something to sell.
const restockSQL = `update items set quantity = quantity + 10, units = units + 10, version = version + 1 where id in ('shirts', 'seats')`

func restock(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, restockSQL)
	return err
}
