package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

func (c *cli) diff() *cobra.Command {
	var config string
	var allow int
	cmd := &cobra.Command{
		Use: "diff", Short: "Say what serving a job file would change in the database", Args: exactly(),
		Long: `Say what serving a job file would change in the database: jobs that are new, whose definition is another, and
that would be retired. It changes nothing. What isn't stored, such as a command's arguments, is no difference.

Exit code 2: the file is wrong, or would retire so many jobs that serve refuses it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := c.goodConfig(config, "", c.getenv)
			if err != nil {
				return err
			}
			all, err := definitions(file)
			if err != nil {
				return err
			}
			return c.withHistory(cmd.Context(), func(db *database, h *jobs.History) error {
				diffs, err := jobs.Diff(cmd.Context(), db.pool, file.App, all)
				if err != nil {
					return err
				}
				var known []string
				stored, err := h.Jobs(cmd.Context())
				if err != nil {
					return err
				}
				for _, j := range stored {
					if j.App == file.App && j.RetiredAt == nil {
						known = append(known, j.Job)
					}
				}
				if err := c.printDiffs(diffs); err != nil {
					return err
				}
				if refused := file.CheckRetired(known, allow); len(refused) > 0 {
					c.p.note("%s", clean(refused[0].String()))
					return said(codeUsage)
				}
				return nil
			})
		},
	}
	configFlag(cmd.Flags(), &config)
	cmd.Flags().Var(&between{&allow, 0, 100_000}, "allow-retire", "how many jobs may be retired at once")
	return cmd
}

func (c *cli) printDiffs(diffs []jobs.Difference) error {
	heads := []string{"JOB", "WHAT", "FIELD", "WAS", "IS"}
	if c.p.json {
		return c.p.value(diffs)
	}
	var rows [][]string
	for _, d := range diffs {
		if len(d.Fields) == 0 {
			rows = append(rows, []string{d.Job, d.What, "-", "-", "-"})
		}
		for _, f := range d.Fields {
			rows = append(rows, []string{d.Job, d.What, f.Field, or(plainValue(f.Was)), or(plainValue(f.Is))})
		}
	}
	if len(rows) == 0 {
		c.p.note("no difference")
		return nil
	}
	c.p.table(heads, rows)
	return nil
}

// plainValue is a value of JSON as people write it: no quotes, and long numbers are durations.
func plainValue(s string) string {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= int64(time.Millisecond) {
		return time.Duration(n).String()
	}
	return strings.Trim(s, `"`)
}
