package main

import (
	"github.com/spf13/cobra"

	"pawl/jobs"
)

func (c *cli) why() *cobra.Command {
	return &cobra.Command{
		Use: "why JOB PERIOD", Short: "Tell the life of a period in sentences", Args: exactly("JOB", "PERIOD"),
		Long: `Tell the life of a period in sentences: how it came to be owed, its runs, what people did to it, and what it
is or waits for now. It is told from rows alone; a period without a row is told too.`,
		Example: `  pawl why settle 2026-09-16`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHistory(cmd.Context(), func(_ *database, h *jobs.History) error {
				w, err := h.Why(cmd.Context(), args[0], args[1])
				if err != nil {
					return err
				}
				if c.p.json {
					return c.p.value(w)
				}
				for _, s := range w.Sentences {
					c.p.line("%s", clean(s))
				}
				return nil
			})
		},
	}
}
