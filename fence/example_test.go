package fence_test

import (
	"context"
	"errors"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
)

// The lease comes from pawl/lockrepo; what travels is its token.
func ExampleDo() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://localhost/shop")
	if err != nil {
		log.Fatal(err)
	}
	tok := fence.Token{Lock: "job:settle", Seq: 1795969942676573}

	err = fence.Do(ctx, pool, tok, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update settlement set state = 'paid' where day = '2026-09-16'`)
		return err
	})
	var stale *fence.StaleError
	switch {
	case errors.As(err, &stale): // nothing was written: somebody else has the lock, or the lease has ended
		log.Printf("stopped: %v", stale)
	case errors.Is(err, fence.ErrUnknown): // ask with select … for update on the row
		log.Printf("ask: %v", err)
	case err != nil:
		log.Printf("failed: %v", err)
	}
}

// In a transaction of your own, at any isolation level, the guard comes first.
func ExampleGuard() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://localhost/shop")
	if err != nil {
		log.Fatal(err)
	}
	tok := fence.Token{Lock: "job:settle", Seq: 1795969942676573}

	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		if err := fence.Guard(ctx, tx, tok); err != nil {
			return err // fence.ErrNotHeld: roll back and stop
		}
		_, err := tx.Exec(ctx, `insert into payout (account, cents) values (42, 1999)`)
		return err
	})
	if err != nil {
		log.Print(err)
	}
}

// Writers that take no part in the guard, such as a service that is handed the token: a mark per account keeps old
// holders out.
func ExampleClaim() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://localhost/shop")
	if err != nil {
		log.Fatal(err)
	}
	tok := fence.Token{Lock: "job:settle", Seq: 1795969942676573}

	// Once, after acquiring and before reading: no older token can write these any more.
	if err := fence.Claim(ctx, pool, tok, "account:42", "account:43"); err != nil {
		log.Fatal(err)
	}
	// Then read, decide, and check in the transaction of each write.
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := fence.Check(ctx, tx, tok, "account:42"); err != nil {
			return err // fence.ErrStale: a newer holder has claimed it
		}
		_, err := tx.Exec(ctx, `update account set cents = cents - 1999 where id = 42`)
		return err
	})
	if err != nil {
		log.Print(err)
	}
}
