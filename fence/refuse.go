package fence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// recordTimeout bounds the record of a refusal, which no caller waits for gladly.
const recordTimeout = 2 * time.Second

const refuseSQL = `select pawl.refuse($1, $2, nullif($3, ''), nullif($4, ''))`

// Refused records in pawl.refusals that a write with tok to target was refused, with the lock's current token and how
// late the write came after its lease's end. The transaction is its own: the refused one is gone. target and
// statement may be empty; of a statement the first 500 characters are kept. [Do] and [Claim] do this by themselves;
// call it where the write went elsewhere, or in a transaction that [Guard] was called in.
func Refused(ctx context.Context, db DB, tok Token, target, statement string) error {
	if err := tok.check(); err != nil {
		return err
	}
	err := pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, refuseSQL, tok.Lock, tok.Seq, target, statement)
		return err
	})
	if err != nil {
		return fmt.Errorf("fence: record refusal of %s: %w", tok, err)
	}
	return nil
}

// refusal says whether err is the fence's own no.
func refusal(err error) bool {
	var stale *StaleError
	return errors.As(err, &stale) || errors.Is(err, ErrUnfenced) || errors.Is(err, ErrOtherLock)
}

// record is best effort: the refusal itself is what the caller must hear of.
func record(ctx context.Context, db DB, tok Token, err error, step string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	var d detail
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		d = detailOf(pg)
	}
	if step == "write" {
		step = cmp.Or(d.Statement, step)
	}
	_ = Refused(ctx, db, tok, d.Target, step)
}
