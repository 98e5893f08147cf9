package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"pawl/migrations"
)

const (
	thereSQL  = `select to_regnamespace('pawl') is not null`
	countsSQL = `
select (select count(*) from pawl.locks), (select count(*) from pawl.locks where expires_at > clock_timestamp()), (select count(*) from pawl.periods)`
)

func (c *cli) migrateDown() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "down --yes", Short: "Drop the schema pawl with all that is in it, for good", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			db, err := c.open(ctx, 4)
			if err != nil {
				return err
			}
			defer db.pool.Close()
			if !yes {
				if err := refuseDown(ctx, db.pool); err != nil {
					return err
				}
			}
			if err := migrations.Down(ctx, db.pool); err != nil {
				return err
			}
			if c.p.json {
				return c.p.value(map[string]any{"dropped": "pawl"})
			}
			c.p.line("the schema pawl is gone")
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "yes, drop it")
	return cmd
}

// refuseDown says what would be gone. Where there is no such schema there is nothing to be afraid of.
func refuseDown(ctx context.Context, pool *pgxpool.Pool) error {
	var there bool
	if err := pool.QueryRow(ctx, thereSQL).Scan(&there); err != nil || !there {
		return err
	}
	what := "all that is in it"
	var locks, held, periods int64
	// A schema that is half there has no counts.
	if err := pool.QueryRow(ctx, countsSQL).Scan(&locks, &held, &periods); err == nil {
		what = fmt.Sprintf("%s (%d held now) and %s", plural(locks, "lock", "locks"), held, plural(periods, "period", "periods"))
	}
	return usage("this drops the schema pawl with %s, for good; if you mean it, say: pawl migrate down --yes", what)
}
