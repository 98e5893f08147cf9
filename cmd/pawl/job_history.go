package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

func (c *cli) jobHistory() *cobra.Command {
	var limit int
	var key, state string
	var periods bool
	cmd := &cobra.Command{
		Use: "history JOB", Short: "List what a job owed and the runs that it took, the newest first", Args: exactly("JOB"),
		Long: `List what a job owed and the runs that it took, the newest first.

With --json it is the runs, or with --periods the periods. --state and --period choose among them.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHistory(cmd.Context(), func(_ *database, h *jobs.History) error {
				if err := knownJob(cmd.Context(), h, args[0]); err != nil {
					return err
				}
				runs := jobs.RunFilter{Job: args[0], Key: key, State: state, Limit: limit}
				owed := jobs.PeriodFilter{Job: args[0], State: state, Limit: limit}
				switch {
				case periods:
					return c.listPeriods(cmd.Context(), h, owed)
				case c.p.json || state != "" || key != "":
					return c.listRuns(cmd.Context(), h, runs)
				}
				if err := c.listPeriods(cmd.Context(), h, owed); err != nil {
					return err
				}
				c.p.line("")
				return c.listRuns(cmd.Context(), h, runs)
			})
		},
	}
	limitFlag(cmd, &limit)
	cmd.Flags().StringVar(&key, "period", "", "only runs of this period, such as 2026-09-16")
	cmd.Flags().StringVar(&state, "state", "", "only runs, or with --periods periods, in this state")
	cmd.Flags().BoolVar(&periods, "periods", false, "list periods only")
	return cmd
}

func (c *cli) listRuns(ctx context.Context, h *jobs.History, f jobs.RunFilter) error {
	runs, err := h.Runs(ctx, f)
	if err != nil {
		return stateWords(err, "; add --periods for a period's")
	}
	if len(runs) == 0 && f.Key != "" {
		if err := known(ctx, h, f.Job, f.Key); err != nil {
			return err
		}
	}
	return list(c.p, runs, "no runs", []string{"PERIOD", "RUN", "STATE", "TOKEN", "HOLDER", "STARTED", "TOOK", "DONE", "ERROR"}, runCells)
}

func (c *cli) listPeriods(ctx context.Context, h *jobs.History, f jobs.PeriodFilter) error {
	periods, err := h.Periods(ctx, f)
	if err != nil {
		return stateWords(err, "")
	}
	heads := []string{"PERIOD", "STATE", "REASON", "SCHEDULED", "RUNS", "COMPLETED", "TOKEN", "PARAMS"}
	return list(c.p, periods, "no periods", heads, func(p jobs.PeriodRecord) []string {
		var seq int64
		if p.Token != nil {
			seq = *p.Token
		}
		return []string{p.Key, p.State, or(reasonWords(p)), at(&p.ScheduledAt), thousands(int64(p.Attempts)), at(p.CompletedAt), token(seq), or(p.ParamWords())}
	})
}

// reasonWords is a period's reason; of one that is dead since shards are, with those.
func reasonWords(p jobs.PeriodRecord) string {
	if p.Reason != "shard" || p.BlockedBy == "" {
		return p.Reason
	}
	return "shard " + strings.ReplaceAll(p.BlockedBy, p.Job+" "+p.Key+"#", "")
}

// stateWords says what a state may be.
func stateWords(err error, more string) error {
	var wrong *jobs.StateError
	if !errors.As(err, &wrong) {
		return err
	}
	last := len(wrong.States) - 1
	return usage("--state is %q: a %s's is %s or %s%s", wrong.State, wrong.What, strings.Join(wrong.States[:last], ", "), wrong.States[last], more)
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
