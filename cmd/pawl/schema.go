package main

import (
	"strings"

	"github.com/spf13/cobra"

	"pawl/jobs/jobfile"
)

func (c *cli) schema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the job file's JSON Schema, for editors", Args: exactly(),
		Long: `Print the job file's JSON Schema (2020-12). An editor that knows it completes and checks pawl.yaml as you
type; pawl lint says more.`,
		Example: `  pawl schema > pawl.schema.json    # and in pawl.yaml:
  # yaml-language-server: $schema=pawl.schema.json`,
		RunE: func(*cobra.Command, []string) error {
			return c.p.raw(strings.TrimRight(string(jobfile.Schema()), "\n") + "\n")
		},
	}
}
