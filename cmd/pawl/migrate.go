package main

import (
	"github.com/spf13/cobra"
)

func (c *cli) migrate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the schema pawl up to date, show it, print it or drop it", Args: noCommand, RunE: help,
	}
	cmd.AddCommand(c.migrateUp(), c.migrateStatus(), c.migrateDown(), c.migrateSQL())
	return cmd
}
