package main

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	takeSQL  = `update items set quantity = quantity - 1, version = version + 1 where id = $1 and quantity > 0 and version = $2`
	seeSQL   = `select quantity, version from items where id = $1`
	orderSQL = `insert into orders (id, item, state) values ($1, $2, $3)`
)

// buyOnCondition needs no lock: the statement says what must be true, and the database makes it wait its turn. The version is
// what the buyer has seen: who has seen less buys nothing and looks again. The order's id makes a repeated request fail.
func buyOnCondition(ctx context.Context, pool *pgxpool.Pool, order uuid.UUID, item string) (bought bool, err error) {
	var quantity, version int
	if err := pool.QueryRow(ctx, seeSQL, item).Scan(&quantity, &version); err != nil || quantity < 1 {
		return false, err
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, takeSQL, item, version)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		bought = true
		_, err = tx.Exec(ctx, orderSQL, order, item, "sold")
		return err
	})
	return bought && err == nil, err
}

// buyOnSight is the same without the condition: it writes what it has computed from what it has seen.
func buyOnSight(ctx context.Context, pool *pgxpool.Pool, order uuid.UUID, item string) error {
	var quantity, version int
	if err := pool.QueryRow(ctx, seeSQL, item).Scan(&quantity, &version); err != nil || quantity < 1 {
		return err
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, writeSQL, item, quantity-1); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, orderSQL, order, item, "sold")
		return err
	})
}
