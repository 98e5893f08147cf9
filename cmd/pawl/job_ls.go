package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

// listedJob is a job with what it owes.
type listedJob struct {
	jobs.JobRecord

	Open    int64 `json:"open"`
	Running int64 `json:"running"`
	Held    int64 `json:"held"`
	Dead    int64 `json:"dead"`
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
				owed, err := h.PeriodCounts(cmd.Context())
				if err != nil {
					return err
				}
				var rows []listedJob
				for _, j := range all {
					n := owed[j.Job]
					rows = append(rows, listedJob{j, n["open"], n["running"], n["held"], n["dead"]})
				}
				heads := []string{"JOB", "SCHEDULE", "ZONE", "NEXT", "OPEN", "RUNNING", "HELD", "DEAD", "FENCED", "LOCK"}
				return list(c.p, rows, "no jobs are stored: a worker stores its own when it starts", heads, jobCells)
			})
		},
	}
}

// jobCells fits into 100 columns with names of a dozen letters: seconds that are none are left out where the schedule has none,
// and so is the name of a lock that is the job's own.
func jobCells(j listedJob) []string {
	next := at(j.NextAt)
	if !hasSeconds(j.Schedule) {
		next = strings.Replace(next, ":00Z", "Z", 1)
	}
	lock := j.Lock
	if lock == "job:"+j.Job {
		lock = "own"
	}
	switch {
	case j.RetiredAt != nil:
		next = "retired"
	case j.PausedAt != nil:
		next = "paused"
	}
	return []string{
		j.Job, j.Schedule, or(j.Zone), next, thousands(j.Open), thousands(j.Running), thousands(j.Held), thousands(j.Dead), fenced(j.Badge), lock,
	}
}

// hasSeconds reports whether a schedule's ticks may lie between full minutes.
func hasSeconds(schedule string) bool {
	words := strings.Fields(schedule)
	if len(words) == 2 && words[0] == "@every" {
		every, err := time.ParseDuration(words[1])
		return err == nil && every%time.Minute != 0
	}
	return len(words) == 6
}

// fenced is a job's badge in a word or two; none: Go's own affair.
func fenced(badge string) string {
	switch badge {
	case "not fenced":
		return "no"
	case "fenced, once":
		return "once"
	case "fenced, each statement once":
		return "each"
	case "relies on the receiver":
		return "receiver"
	}
	return or(badge)
}
