package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"pawl/migrations"
)

func (c *cli) migrate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the schema pawl up to date, show it, print it or drop it", Args: noCommand, RunE: help,
	}
	cmd.AddCommand(c.migrateUp(), c.migrateStatus(), c.migrateDown(), c.migrateSQL())
	return cmd
}

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

// migration is one step as it is printed.
type migration struct {
	Version   int64      `json:"version"`
	Name      string     `json:"name"`
	AppliedAt *time.Time `json:"applied_at"`
}

func (c *cli) migrateStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "List the migrations, applied or not", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := c.open(cmd.Context(), 4)
			if err != nil {
				return err
			}
			defer db.pool.Close()
			steps, err := migrations.Status(cmd.Context(), db.pool)
			if err != nil {
				return err
			}
			var all []migration
			for _, s := range steps {
				all = append(all, migration(s))
			}
			return list(c.p, all, "no migrations", []string{"MIGRATION", "APPLIED"}, func(m migration) []string {
				return []string{m.Name, at(m.AppliedAt)}
			})
		},
	}
}

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

func (c *cli) migrateSQL() *cobra.Command {
	return &cobra.Command{
		Use: "sql", Short: "Print all statements, with the grants of the three database roles", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			var b strings.Builder
			if err := migrations.SQL(&b); err != nil {
				return err
			}
			if c.p.json {
				return c.p.value(map[string]string{"sql": b.String()})
			}
			return c.p.raw(b.String())
		},
	}
}
