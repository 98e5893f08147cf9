package kinds

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/jobs"
)

// sqlWork is an [SQL] with its statements.
type sqlWork struct {
	SQL
	statements []statement
}

// sqlMark is the checkpoint of PerStatement.
type sqlMark struct {
	Done int `json:"done"` // statements
}

func (w sqlWork) run(ctx context.Context, run *jobs.Run, rec *recorder) error {
	args := bound(w.Args, run)
	if w.Transaction == Single {
		return run.Complete(ctx, func(tx pgx.Tx) error { return w.all(ctx, run, tx, args, rec) })
	}
	return w.perStatement(ctx, run, args, rec)
}

// all runs the statements in one transaction, with which what they say is kept.
func (w sqlWork) all(ctx context.Context, run *jobs.Run, tx pgx.Tx, args []any, rec *recorder) error {
	for i := range w.statements {
		if err := w.do(ctx, tx, args, i, rec); err != nil {
			return err
		}
	}
	return run.KeepTx(ctx, tx, rec.output())
}

// bound are the arguments of one run.
func bound(all []any, run *jobs.Run) []any {
	value := values(run)
	args := make([]any, len(all))
	for i, a := range all {
		args[i] = written(expand(a, value))
	}
	return args
}

// written is a plain value as text, which the server reads as whatever type the statement wants there; a number would
// fit into no text.
func written(v any) any {
	switch v := v.(type) {
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return v
}

// perStatement goes on after the last statement that was committed with its checkpoint.
func (w sqlWork) perStatement(ctx context.Context, run *jobs.Run, args []any, rec *recorder) error {
	var mark sqlMark
	if _, err := run.Resume(&mark); err != nil {
		return err
	}
	total := int64(len(w.statements))
	for i := mark.Done; i < len(w.statements); i++ {
		run.Progress(int64(i), total)
		if err := w.one(ctx, run, args, i, rec); err != nil {
			return err
		}
	}
	run.Progress(total, total)
	return nil
}

// one runs a statement with its checkpoint in one transaction. In another database the checkpoint follows its commit: a
// crash between the two repeats the statement.
func (w sqlWork) one(ctx context.Context, run *jobs.Run, args []any, i int, rec *recorder) error {
	if w.Database != nil {
		err := pgx.BeginTxFunc(ctx, w.Database, pgx.TxOptions{IsoLevel: w.Isolation}, func(tx pgx.Tx) error {
			return w.do(ctx, tx, args, i, rec)
		})
		if err != nil {
			return err
		}
	}
	return run.Tx(ctx, func(tx pgx.Tx) error {
		if w.Database == nil {
			if err := w.do(ctx, tx, args, i, rec); err != nil {
				return err
			}
		}
		return run.Checkpoint(ctx, tx, sqlMark{Done: i + 1})
	})
}

// do runs one statement. It is described first, in the transaction: the server says what its arguments are, and neither
// a pooler nor a connection keeps anything of it.
func (w sqlWork) do(ctx context.Context, tx pgx.Tx, args []any, i int, rec *recorder) error {
	text, its := w.statements[i].with(args)
	since := time.Now()
	tag, err := tx.Exec(ctx, text, append([]any{pgx.QueryExecModeDescribeExec}, its...)...)
	if err != nil {
		return fmt.Errorf("statement %d of %d: %w", i+1, len(w.statements), err)
	}
	said(rec, i+1, tag, since)
	if i == len(w.statements)-1 {
		return w.Expect.check(tag.RowsAffected())
	}
	return nil
}
