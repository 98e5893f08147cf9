package bench_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/lockrepo"
)

const plainSQL = `update plain set v = v + 1 where id = $1`

// BenchmarkAcquireRelease: a lock taken and given back, against two plain updates by primary key.
func BenchmarkAcquireRelease(b *testing.B) {
	for n, times := range map[int]int{1: 2000, 32: 500} {
		b.Run(fmt.Sprintf("%d connections", n), func(b *testing.B) {
			pool := durable(b, int32(n))
			repo, err := lockrepo.New(lockrepo.Config{Pool: pool})
			if err != nil {
				b.Fatal(err)
			}
			defer repo.Close()
			ctx := context.Background()
			pairs(b, timed(n, times, func(g int) error {
				for range 2 {
					if _, err := pool.Exec(ctx, plainSQL, g); err != nil {
						return err
					}
				}
				return nil
			}), timed(n, times, func(g int) error {
				l, err := repo.Acquire(ctx, fmt.Sprint("lock ", g), time.Minute)
				if err != nil {
					return err
				}
				return repo.Release(ctx, l)
			}))
		})
	}
}

// BenchmarkGuardedWrite: one statement under a token, against the same statement alone.
func BenchmarkGuardedWrite(b *testing.B) {
	pool := durable(b, 1)
	repo, err := lockrepo.New(lockrepo.Config{Pool: pool})
	if err != nil {
		b.Fatal(err)
	}
	defer repo.Close()
	ctx := context.Background()
	l, err := repo.Acquire(ctx, "lock", time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	plain := timed(1, 2000, func(int) error {
		_, err := pool.Exec(ctx, plainSQL, 1)
		return err
	})
	b.Run("Exec", func(b *testing.B) {
		pairs(b, plain, timed(1, 2000, func(int) error {
			_, err := fence.Exec(ctx, pool, l.Token, plainSQL, 1)
			return err
		}))
	})
	b.Run("Do", func(b *testing.B) {
		pairs(b, plain, timed(1, 2000, func(int) error {
			return fence.Do(ctx, pool, l.Token, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, plainSQL, 1)
				return err
			})
		}))
	})
	b.Run("mark of its own", func(b *testing.B) {
		pairs(b, plain, timed(1, 2000, func(int) error {
			_, err := pool.Exec(ctx, `update plain set v = v + 1, last_token = $2 where id = $1 and (last_token is null or last_token <= $2)`, 2, l.Token.Seq)
			return err
		}))
	})
}
