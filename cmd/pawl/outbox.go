package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

func (c *cli) outbox() *cobra.Command {
	cmd := &cobra.Command{
		Use: "outbox", Short: "See the messages that commit with data and are sent after it", Args: noCommand, RunE: help,
		Long: `See the messages that commit with data and are sent after it, in order per key.

A dead message holds those behind it in its key until a person sends it again or drops it:
  pawl job retry OUTBOX PERIOD
  pawl job cancel OUTBOX PERIOD --reason TEXT`,
	}
	cmd.AddCommand(c.outboxList())
	return cmd
}

func (c *cli) outboxList() *cobra.Command {
	var f jobs.MessageFilter
	var dead bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List messages, the oldest first", Args: exactly(),
		Example: `  pawl outbox ls --dead`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dead && f.State != "" {
				return usage("--dead and --state don't go together: give one of them")
			}
			if dead {
				f.State = "dead"
			}
			return c.withHistory(cmd.Context(), func(_ *database, h *jobs.History) error {
				rows, err := h.Messages(cmd.Context(), f)
				if err != nil {
					return err
				}
				now := time.Now()
				return list(c.p, rows, "no such messages", []string{"OUTBOX", "PERIOD", "KEY", "SEQ", "STATE", "RUNS", "SINCE", "ERROR"}, func(m jobs.MessageInfo) []string {
					state := m.State
					if m.Waits != "" && m.State == "open" {
						state += ", waits: " + m.Waits
					}
					if m.Behind > 0 {
						state += ", " + behind(m.Behind) + " behind it"
					}
					return []string{m.Outbox, m.Key, m.MessageKey, strconv.FormatInt(m.Seq, 10), state, strconv.Itoa(m.Attempts), ago(now, &m.At), or(short(m.Error))}
				})
			})
		},
	}
	cmd.Flags().BoolVar(&dead, "dead", false, "only those that no run is left for: a person retries or cancels them")
	cmd.Flags().StringVar(&f.State, "state", "", "only those whose period is open, running, complete, dead, cancelled or skipped, or waiting: open and running")
	cmd.Flags().StringVar(&f.Outbox, "outbox", "", "only those of this outbox")
	cmd.Flags().StringVar(&f.MessageKey, "key", "", "only those of this key")
	limitFlag(cmd, &f.Limit)
	return cmd
}

// behind is how many messages wait for a dead one, as far as they are counted.
func behind(n int) string {
	if n > 1000 {
		return "over 1,000"
	}
	return thousands(int64(n))
}
