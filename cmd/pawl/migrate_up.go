package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"pawl/migrations"
)

func (c *cli) migrateUp() *cobra.Command {
	return &cobra.Command{
		Use: "up", Short: "Apply what is missing; any number of replicas may do so at once", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := c.open(cmd.Context(), 4)
			if err != nil {
				return err
			}
			defer db.pool.Close()
			if err := tooOld(cmd.Context(), db.pool); err != nil {
				return err
			}
			applied, err := migrations.Up(cmd.Context(), db.pool)
			if err != nil {
				return err
			}
			return c.applied(applied)
		},
	}
}

// tooOld refuses a schema that has left this binary behind. One that lacks something is what up is for.
func tooOld(ctx context.Context, pool *pgxpool.Pool) error {
	err := migrations.Check(ctx, pool, migrations.Binary)
	if missing := (*migrations.NotMigratedError)(nil); errors.As(err, &missing) {
		return nil
	}
	return err
}

func (c *cli) applied(names []string) error {
	if c.p.json {
		return c.p.value(map[string]any{"applied": append([]string{}, names...)})
	}
	for _, name := range names {
		c.p.line("applied %s", name)
	}
	if len(names) == 0 {
		c.p.line("nothing to do: the schema is up to date")
	}
	return nil
}
