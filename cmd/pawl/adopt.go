package main

import (
	"github.com/spf13/cobra"

	"pawl/lockrepo"
)

const adoptedSQL = `
select floor, system_identifier <> (select system_identifier from pg_control_system()) from pawl.clock`

func (c *cli) adopt() *cobra.Command {
	return &cobra.Command{
		Use: "adopt", Short: "Say that this restored copy of a database may run what it owes", Args: exactly(),
		Long: `Say that this database, which was restored from another server, may run what it owes.

Until then serve refuses it, so that a copy for staging doesn't run production's periods. New tokens
lie above all that were issued before. On a database that needs no adoption it changes nothing.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			db, err := c.openMigrated(ctx, 2)
			if err != nil {
				return err
			}
			defer db.pool.Close()
			repo, err := lockrepo.New(lockrepo.Config{Pool: db.pool})
			if err != nil {
				return err
			}
			defer repo.Close()
			var floor, before int64
			var foreign bool
			if err := db.pool.QueryRow(ctx, adoptedSQL).Scan(&before, &foreign); err != nil {
				return err
			}
			if err := repo.Adopt(ctx, true); err != nil {
				return err
			}
			if err := db.pool.QueryRow(ctx, adoptedSQL).Scan(&floor, new(bool)); err != nil {
				return err
			}
			if c.p.json {
				return c.p.value(map[string]any{"adopted": floor != before || foreign, "foreign": foreign, "floor": floor})
			}
			switch {
			case foreign:
				c.p.line("adopted: this copy may run what it owes; new tokens are above %s", token(floor))
			case floor != before:
				c.p.line("the server has restarted and is adopted; new tokens are above %s", token(floor))
			default:
				c.p.line("nothing to do: this database is at home on this server")
			}
			return nil
		},
	}
}
