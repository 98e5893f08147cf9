package fence_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// now() is when the transaction began: by it a lease that has ended since would still be live.
func TestAGuardThatComesLateInItsTransactionReadsTheClock(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	tx := begin(t, pool, pgx.TxOptions{})
	exec(t, tx, `select 1`)
	exec(t, pool, `update pawl.locks set expires_at = clock_timestamp() where name = 'job:x'`)
	wantErr(t, fence.Guard(t.Context(), tx, tok), fence.ErrNotHeld)
}
