package kinds

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
)

// ReceiptRows are receipts in a database. Text is required: one query that has a column key, the idempotency key, and may have a
// column detail for people. Rows are read as they come, in a transaction that can't write.
type ReceiptRows struct {
	Text     string
	Args     []any         // $1, $2, …: a Text, which may hold from and to, or a value as it is
	Database *pgxpool.Pool // default pawl's own
}

func (q ReceiptRows) ready() (func(context.Context, *jobs.Run, func(string) string, each) error, error) {
	statements := split(q.Text)
	if len(statements) != 1 {
		return nil, &ConfigError{"SQL.Text", fmt.Sprint(len(statements), " statements"), "write one query"}
	}
	for _, n := range statements[0].params {
		if n < 1 || n > len(q.Args) {
			return nil, &ConfigError{"SQL.Args", len(q.Args), fmt.Sprintf("the query uses $%d: give as many arguments", n)}
		}
	}
	return func(ctx context.Context, run *jobs.Run, value func(string) string, f each) error {
		read := func(tx pgx.Tx) error { return q.rows(ctx, tx, statements[0], value, f) }
		if q.Database == nil {
			return run.Read(ctx, read)
		}
		return pgx.BeginTxFunc(ctx, q.Database, pgx.TxOptions{AccessMode: pgx.ReadOnly}, read)
	}, nil
}

// rows gives each row as a map of its columns.
func (q ReceiptRows) rows(ctx context.Context, tx pgx.Tx, query statement, value func(string) string, f each) error {
	text, of := query.text()
	bound := []any{pgx.QueryExecModeDescribeExec}
	for _, n := range of {
		bound = append(bound, written(expand(q.Args[n-1], value)))
	}
	rows, err := tx.Query(ctx, "select to_jsonb(q)::text from (\n"+text+"\n) q", bound...)
	if err != nil {
		return err
	}
	var row string
	n := 0
	_, err = pgx.ForEachRow(rows, []any{&row}, func() error {
		n++
		body, err := decode([]byte(row))
		if err != nil {
			return err
		}
		r, err := receipt(body, "/key", "/detail")
		if err != nil {
			return fmt.Errorf("row %d %w", n, err)
		}
		return f(r)
	})
	return err
}
