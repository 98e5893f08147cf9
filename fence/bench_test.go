package fence_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// BenchmarkGuardedWrite writes one row by a plain UPDATE, by one in a transaction and by one in Do, in turns, so that a
// busy machine slows all three alike. It reports how many plain updates, and how many plain transactions, a guarded
// write takes as long as.
func BenchmarkGuardedWrite(b *testing.B) {
	ctx, pool := b.Context(), pgtest.New(b)
	exec(b, pool, `create table public.account (id int primary key, cents bigint) with (fillfactor = 50)`)
	exec(b, pool, `insert into public.account values (42, 0)`)
	tok := acquire(b, pool, "job:x", "a", time.Hour)
	update := func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update public.account set cents = cents + 1 where id = 42`)
		return err
	}
	ways := []func() error{
		func() error {
			_, err := pool.Exec(ctx, `update public.account set cents = cents + 1 where id = 42`)
			return err
		},
		func() error { return pgx.BeginFunc(ctx, pool, update) },
		func() error { return fence.Do(ctx, pool, tok, update) },
	}
	took := make([]time.Duration, len(ways))
	for b.Loop() {
		for i, way := range ways {
			start := time.Now()
			if err := way(); err != nil {
				b.Fatal(err)
			}
			took[i] += time.Since(start)
		}
	}
	plain, transaction, guarded := float64(took[0]), float64(took[1]), float64(took[2])
	b.ReportMetric(guarded/float64(b.N), "guarded-ns")
	b.ReportMetric(guarded/plain, "x-plain")
	b.ReportMetric(guarded/transaction, "x-transaction")
}
