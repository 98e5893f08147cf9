package main

import (
	"strings"

	"github.com/spf13/cobra"

	"pawl/migrations"
)

func (c *cli) migrateSQL() *cobra.Command {
	var only bool
	cmd := &cobra.Command{
		Use: "sql", Short: "Print all statements, with the grants of the three database roles", Args: exactly(),
		Long: `Print the statements that make the schema pawl in an empty database, and after them the three database roles
with their grants. For a database that pawl migrate up has migrated, --roles prints only those; they may be
run again.`,
		Example: `  pawl migrate sql --roles | psql "$DATABASE_URL" -v ON_ERROR_STOP=1`,
		RunE: func(*cobra.Command, []string) error {
			var b strings.Builder
			if only {
				b.WriteString(migrations.Roles())
			} else if err := migrations.SQL(&b); err != nil {
				return err
			}
			if c.p.json {
				return c.p.value(map[string]string{"sql": b.String()})
			}
			return c.p.raw(b.String())
		},
	}
	cmd.Flags().BoolVar(&only, "roles", false, "print only the roles and their grants")
	return cmd
}
