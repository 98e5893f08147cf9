package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const schemaSQL = `
create schema report_demo;
create table report_demo.invoices (
    tenant   text not null,
    id       bigint not null,
    at       timestamptz not null,
    customer text not null,
    cents    bigint not null,
    primary key (tenant, id)
);
create table report_demo.tenants (tenant text primary key, name text not null)`

// create makes the tables of the example.
func create(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, schemaSQL)
	return err
}

// Ids follow the time, so that a statement is one range of the primary key in its order. Customers have what a CSV and a page must quote.
const generateSQL = `
with t as (
  insert into report_demo.tenants select 'tenant-' || lpad(i::text, 2, '0'), 'Tenant ' || i || ' & Co' from generate_series(1, $1::int) i
  returning tenant
)
insert into report_demo.invoices (tenant, id, at, customer, cents)
select t.tenant, m * 10000000 + i, $2::timestamptz + m * interval '1 month' + (i - 1) * interval '27 days' / $4::int,
       'Customer ' || i % 97 || case i % 3 when 0 then ', "Ltd"' when 1 then ' <b>' else '' end, 100 + hashint8extended(i * 31 + m, hashtext(t.tenant)) % 50000 + 50000
  from t cross join generate_series(0, $3::int - 1) m cross join generate_series(1, $4::int) i`

// input says which invoices there are: so many in each month of each tenant.
type input struct {
	tenants, months, invoices int
	first                     time.Time // of the months, UTC
}

func generate(ctx context.Context, pool *pgxpool.Pool, in input) error {
	if _, err := pool.Exec(ctx, generateSQL, in.tenants, in.first, in.months, in.invoices); err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	_, err := pool.Exec(ctx, `analyze report_demo.invoices`)
	return err
}

// total is what a statement adds up to.
type total struct{ rows, cents int64 }

// monthly is a statement of one tenant.
type monthly struct{ tenant, month string }

const totalsSQL = `
select tenant, to_char(at at time zone 'UTC', 'YYYY-MM'), count(*), sum(cents)::bigint from report_demo.invoices group by 1, 2`

// totals are what the statements must add up to, by a query that shares nothing with those that write them.
func totals(ctx context.Context, pool *pgxpool.Pool) (map[monthly]total, error) {
	rows, err := pool.Query(ctx, totalsSQL)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[monthly]total{}
	for rows.Next() {
		var m monthly
		var t total
		if err := rows.Scan(&m.tenant, &m.month, &t.rows, &t.cents); err != nil {
			return nil, err
		}
		all[m] = t
	}
	return all, rows.Err()
}

// tenants are all there are, by name.
func tenants(ctx context.Context, pool *pgxpool.Pool) (all []string, err error) {
	err = pool.QueryRow(ctx, `select array_agg(tenant order by tenant) from report_demo.tenants`).Scan(&all)
	return all, err
}
