package fence

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

const (
	fenceSQL = `select pawl.fence($1, $2, variadic $3::text[])`
	onceSQL  = `select pawl.once($1, $2, $3)`
)

// Claim raises the marks of targets to tok, in a guarded transaction of its own that is committed when it returns. A
// new holder claims what it will write before it reads it: from then on an old holder's [Check] fails, so that no
// write of it can come between the read and the new holder's first write. The targets are taken in the order of their
// names, so that claims don't deadlock. Never claim what [Once] writes.
//
// Errors: those of [Do]; [ErrStale] when a target has seen a newer token; [ErrOtherLock] when it belongs to another
// lock. Then no mark has been raised.
func Claim(ctx context.Context, db DB, tok Token, targets ...string) error {
	if err := checkTargets(targets...); err != nil {
		return err
	}
	return DoWith(ctx, db, tok, Options{Statement: "claim"}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, fenceSQL, tok.Lock, tok.Seq, targets)
		return wrapAs("claim", err, tok)
	})
}

// Check lets a holder write target as often as it likes: the target's mark may not be above tok, and is raised to it
// (mark <= token; a target without a mark passes). Call it in the transaction of the write. Writers with the same
// token don't wait for each other once the mark is theirs.
//
// Errors: a [*StaleError] that is [ErrStale], or [ErrOtherLock]. tx can then only be rolled back.
func Check(ctx context.Context, tx pgx.Tx, tok Token, target string) error {
	if err := errors.Join(tok.check(), checkTargets(target)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, fenceSQL, tok.Lock, tok.Seq, []string{target})
	return wrapAs("check", err, tok)
}

// Once lets target be written once per token: its mark must be below tok, and is raised to it (mark < token; a target
// without a mark passes). A second write with the same token is [ErrStale]. Never use it on a target that is claimed
// or checked: the claim has raised the mark already, so nobody could write.
func Once(ctx context.Context, tx pgx.Tx, tok Token, target string) error {
	if err := errors.Join(tok.check(), checkTargets(target)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, onceSQL, tok.Lock, tok.Seq, target)
	return wrapAs("once", err, tok)
}

func checkTargets(targets ...string) error {
	for _, t := range targets {
		if t == "" {
			return errors.New("fence: target is empty; give the name of what is written, such as account:42")
		}
	}
	return nil
}
