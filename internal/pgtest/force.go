package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Force releases a lease by force: one person asks for it and another approves.
func Force(t testing.TB, pool *pgxpool.Pool, lock string, token int64, reason string) {
	t.Helper()
	if outcome, err := TryForce(t.Context(), pool, lock, token, reason); err != nil || outcome != "approved" {
		t.Fatalf("pgtest: force %q: %s, %v", lock, outcome, err)
	}
}

// TryForce is Force that may be refused. It returns the outcome of the step
// that ended it, approved if both passed.
func TryForce(ctx context.Context, pool *pgxpool.Pool, lock string, token int64, reason string) (outcome string, err error) {
	const ask = `select outcome, coalesce(request, 0) from pawl.request_release($1::text, $2::bigint, $3::text, false, 'cli:ann@test', 'ann', true)`
	var request int64
	err = pool.QueryRow(ctx, ask, pgx.QueryExecModeExec, lock, token, reason).Scan(&outcome, &request)
	if err != nil || outcome != "pending" {
		return outcome, err
	}
	const approve = `select pawl.decide_release($1::bigint, 'cli:bob@test', 'bob', true, true)`
	err = pool.QueryRow(ctx, approve, pgx.QueryExecModeExec, request).Scan(&outcome)
	return outcome, err
}
