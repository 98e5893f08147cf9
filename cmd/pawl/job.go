package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

func (c *cli) job() *cobra.Command {
	cmd := &cobra.Command{
		Use: "job", Short: "Show what is owed and what ran, or make a job's period owed now", Args: noCommand, RunE: help,
	}
	cmd.AddCommand(c.jobList(), c.jobTrigger(), c.jobHistory())
	return cmd
}

// withHistory runs fn on what the database knows of jobs.
func (c *cli) withHistory(ctx context.Context, fn func(*database, *jobs.History) error) error {
	db, err := c.openMigrated(ctx, 2)
	if err != nil {
		return err
	}
	defer db.pool.Close()
	return fn(db, jobs.NewHistory(db.pool))
}

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

// knownJob refuses a job that isn't stored.
func knownJob(ctx context.Context, h *jobs.History, name string) error {
	all, err := h.Jobs(ctx)
	if err != nil {
		return err
	}
	for _, j := range all {
		if j.Job == name {
			return nil
		}
	}
	return fmt.Errorf("%w %q: no schedule of that name is stored; list them with: pawl job ls", jobs.ErrUnknownJob, name)
}

func (c *cli) jobTrigger() *cobra.Command {
	return &cobra.Command{
		Use: "trigger JOB", Short: "Make a job's current period owed now, whatever its schedule says", Args: exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHistory(cmd.Context(), func(db *database, h *jobs.History) error {
				key, err := jobs.Trigger(cmd.Context(), db.pool, args[0], actor())
				if err != nil {
					return err
				}
				if !c.p.json {
					c.p.line("%s %s is owed now", clean(args[0]), clean(key))
					return nil
				}
				periods, err := h.Periods(cmd.Context(), jobs.PeriodFilter{Job: args[0], Limit: mostCounted})
				if err != nil {
					return err
				}
				for _, p := range periods {
					if p.Key == key {
						return c.p.value(p)
					}
				}
				return fmt.Errorf("%s %s is owed now, but is not among the last %d periods", args[0], key, mostCounted)
			})
		},
	}
}

func runCells(r jobs.RunRecord) []string {
	done := "-"
	if r.Done != nil {
		done = thousands(*r.Done)
		if r.Total != nil {
			done += "/" + thousands(*r.Total)
		}
	}
	return []string{
		r.Key, fmt.Sprint(r.Attempt), r.State, token(r.Token), or(r.Holder), at(&r.StartedAt), took(r), done, or(r.Error),
	}
}

func took(r jobs.RunRecord) string {
	if r.EndedAt == nil {
		return humanise(time.Since(r.StartedAt)) + " so far"
	}
	return since(&r.StartedAt, r.EndedAt)
}
