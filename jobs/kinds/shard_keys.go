package kinds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
)

// ShardKeys is a statement that lists the shards of a period: one column, whose rows are their keys, in that order. It reads
// only. Text is required.
type ShardKeys struct {
	Text     string        // one select, with, values or table
	Args     []any         // $1, $2, …: a Text, or a value as it is
	Database *pgxpool.Pool // default pawl's
}

const (
	readOnlySQL = `set local transaction_read_only = on`
	tooMany     = 10_001 // one more than a period may have
)

// Func returns what lists the shards, or a [*ConfigError].
func (s ShardKeys) Func() (jobs.ShardKeys, error) {
	statements := split(s.Text)
	if len(statements) != 1 {
		return nil, &ConfigError{"Text", fmt.Sprint(len(statements), " statements"), "write one"}
	}
	st := statements[0]
	if len(st.words) == 0 || !slices.Contains([]string{"SELECT", "WITH", "VALUES", "TABLE"}, st.words[0]) {
		return nil, &ConfigError{"Text", strings.Join(st.words[:min(len(st.words), 1)], ""), "begin with select, with, values or table: it reads only"}
	}
	if err := st.fits(s.Args); err != nil {
		return nil, err
	}
	return func(ctx context.Context, run *jobs.Run) (keys []string, err error) {
		text, args := st.with(bound(s.Args, run))
		ask := func(tx pgx.Tx) error {
			keys, err = askKeys(ctx, tx, text, args)
			return err
		}
		if s.Database != nil {
			err = pgx.BeginTxFunc(ctx, s.Database, pgx.TxOptions{AccessMode: pgx.ReadOnly}, ask)
		} else {
			err = run.Tx(ctx, func(tx pgx.Tx) error { return readOnly(ctx, tx, ask) })
		}
		if err == nil {
			err = checkKeys(keys)
		}
		if err != nil {
			return nil, fmt.Errorf("shards: %w", err)
		}
		return keys, nil
	}, nil
}

// readOnly calls fn where nothing can be written, in a transaction whose guards write locks.
func readOnly(ctx context.Context, tx pgx.Tx, fn func(pgx.Tx) error) error {
	inner, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = inner.Rollback(ctx) }() // which ends it
	if _, err := inner.Exec(ctx, readOnlySQL); err != nil {
		return err
	}
	return fn(inner)
}

// askKeys reads the keys as the server writes them, whatever their type.
func askKeys(ctx context.Context, tx pgx.Tx, text string, args []any) (keys []string, err error) {
	options := []any{pgx.QueryExecModeDescribeExec, pgx.QueryResultFormats{pgx.TextFormatCode}}
	rows, err := tx.Query(ctx, text, append(options, args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() && len(keys) < tooMany {
		row := rows.RawValues()
		switch {
		case len(row) != 1:
			return nil, fmt.Errorf("the statement gives %d columns: select the keys alone", len(row))
		case row[0] == nil:
			return nil, fmt.Errorf("row %d is null: select keys only", len(keys)+1)
		}
		keys = append(keys, string(row[0]))
	}
	rows.Close()
	return keys, rows.Err()
}

func checkKeys(keys []string) error {
	i, fix := jobs.BadShardKey(keys)
	switch {
	case i < 0:
		return nil
	case i == tooMany-1:
		return errors.New("the statement gives more than 10000 rows: select fewer")
	}
	return fmt.Errorf("row %d, %.80q, can't be a key: %s", i+1, keys[i], fix)
}
