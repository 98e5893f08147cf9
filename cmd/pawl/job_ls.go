package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

func (c *cli) jobList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List jobs: their schedules and what they owe", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withHistory(cmd.Context(), func(_ *database, h *jobs.History) error {
				all, err := h.Jobs(cmd.Context())
				if err != nil {
					return err
				}
				owed, err := countPeriods(cmd.Context(), h)
				if err != nil {
					return err
				}
				heads := []string{"JOB", "SCHEDULE", "ZONE", "NEXT", "OPEN", "RUNNING", "HELD", "DEAD", "LOCK"}
				return list(c.p, all, "no jobs are stored: a worker stores its own when it starts", heads, func(j jobs.JobRecord) []string {
					next := at(j.NextAt)
					if j.RetiredAt != nil {
						next = "retired"
					}
					row := []string{j.Job, j.Schedule, or(j.Zone), next}
					for _, state := range owedStates {
						row = append(row, cmp.Or(owed[j.Job+"/"+state], "0"))
					}
					return append(row, j.Lock)
				})
			})
		},
	}
}

var owedStates = []string{"open", "running", "held", "dead"}

// mostCounted is how many periods of a state are counted, over all jobs.
const mostCounted = 1000

// countPeriods counts by "job/state".
func countPeriods(ctx context.Context, h *jobs.History) (map[string]string, error) {
	counts := map[string]string{}
	for _, state := range owedStates {
		periods, err := h.Periods(ctx, jobs.PeriodFilter{State: state, Limit: mostCounted})
		if err != nil {
			return nil, err
		}
		n := map[string]int{}
		for _, p := range periods {
			n[p.Job]++
		}
		for job, count := range n {
			counts[job+"/"+state] = thousands(int64(count))
			if len(periods) == mostCounted {
				counts[job+"/"+state] += "+"
			}
		}
	}
	return counts, nil
}
