package main

import (
	"time"

	"github.com/spf13/cobra"

	"pawl/migrations"
)

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
