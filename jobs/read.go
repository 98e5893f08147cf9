package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Read runs fn in a transaction of pawl's database that can't write, and has no guard: it neither holds up a successor nor
// knows of one. It takes a connection of its own for as long as fn runs.
func (r *Run) Read(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, r.runner.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}, fn)
}
