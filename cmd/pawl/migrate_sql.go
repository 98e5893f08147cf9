package main

import (
	"strings"

	"github.com/spf13/cobra"

	"pawl/migrations"
)

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
