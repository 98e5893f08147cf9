package fence_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// BenchmarkGuardedWrite writes one row by a plain UPDATE, by one in a transaction, and by one in Do. The last prints
// what the guard costs: how many plain updates, and how many plain transactions, one guarded write takes as long as.
func BenchmarkGuardedWrite(b *testing.B) {
	pool := pgtest.New(b)
	exec(b, pool, `create table public.account (id int primary key, cents bigint) with (fillfactor = 50)`)
	exec(b, pool, `insert into public.account values (42, 0)`)
	tok := acquire(b, pool, "job:x", "a", time.Hour)
	const update = `update public.account set cents = cents + 1 where id = 42`

	var plain, transaction, guarded float64
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			exec(b, pool, update)
		}
		plain = perOp(b)
	})
	b.Run("transaction", func(b *testing.B) {
		for b.Loop() {
			err := pgx.BeginFunc(b.Context(), pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(b.Context(), update)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		transaction = perOp(b)
	})
	b.Run("guarded", func(b *testing.B) {
		for b.Loop() {
			err := fence.Do(b.Context(), pool, tok, func(tx pgx.Tx) error {
				_, err := tx.Exec(b.Context(), update)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		guarded = perOp(b)
		b.ReportMetric(guarded/plain, "x-plain")
		b.ReportMetric(guarded/transaction, "x-transaction")
	})
}

func perOp(b *testing.B) float64 { return float64(b.Elapsed()) / float64(b.N) }
