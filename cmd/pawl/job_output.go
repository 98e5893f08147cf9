package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

// saidByRun is the output of a run.
type saidByRun struct {
	Run      string `json:"run"`
	Revision int    `json:"revision"`
	Attempt  int    `json:"attempt"`
	State    string `json:"state"`
	Head     string `json:"head"`
	Tail     string `json:"tail"`  // what is missing lies between head and tail
	Bytes    int64  `json:"bytes"` // in all
	Complete bool   `json:"complete"`
}

func (c *cli) jobOutput() *cobra.Command {
	var attempt, revision int
	cmd := &cobra.Command{
		Use: "output JOB PERIOD", Short: "Print what a period's last run has said", Args: exactly("JOB", "PERIOD"),
		Long: `Print what a period's last run has said, or the run of --attempt, of the last revision or of --revision: the
beginning and the end of it. While a command runs, and when its worker was killed, it is what it had said a few
seconds ago, and is marked as incomplete.`,
		Example: `  pawl job output report 2026-09-16 --attempt 1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHistory(cmd.Context(), func(_ *database, h *jobs.History) error {
				if err := knownJob(cmd.Context(), h, args[0]); err != nil {
					return err
				}
				return c.output(cmd.Context(), h, args[0], args[1], attempt, revision)
			})
		},
	}
	cmd.Flags().IntVar(&attempt, "attempt", 0, "of this run; default the last that said something")
	cmd.Flags().IntVar(&revision, "revision", 0, "of this revision's runs; default the last")
	return cmd
}

func (c *cli) output(ctx context.Context, h *jobs.History, job, key string, attempt, revision int) error {
	runs, err := h.Runs(ctx, jobs.RunFilter{Job: job, Key: key, Limit: mostListed})
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		if err := known(ctx, h, job, key); err != nil {
			return err
		}
	}
	for _, r := range runs {
		if revision == 0 {
			revision = r.Revision
		}
		if r.Revision != revision || attempt != 0 && r.Attempt != attempt {
			continue
		}
		o, err := h.Output(ctx, r.ID)
		if errors.Is(err, jobs.ErrNoOutput) {
			continue
		}
		if err != nil {
			return err
		}
		return c.printOutput(r, o)
	}
	return conflict("nothing is kept of what %s %s has said; see its runs with: pawl job history %s --period %s", job, key, job, key)
}

func (c *cli) printOutput(r jobs.RunRecord, o jobs.OutputRecord) error {
	if c.p.json {
		return c.p.value(saidByRun{
			Run: r.ID.String(), Revision: r.Revision, Attempt: r.Attempt, State: r.State, Head: strings.ToValidUTF8(string(o.Head), "\uFFFD"),
			Tail: strings.ToValidUTF8(string(o.Tail), "\uFFFD"), Bytes: o.Bytes, Complete: !o.Partial,
		})
	}
	text := string(o.Head)
	if o.Cut() {
		text += fmt.Sprintf("\n… %s bytes are not kept …\n", thousands(o.Bytes-int64(len(o.Head)+len(o.Tail))))
	}
	text += string(o.Tail)
	if isTerminal(c.p.out) {
		text = cleanLines(text) // what a program says must not steer the terminal
	}
	if err := c.p.raw(text); err != nil {
		return err
	}
	switch {
	case o.Partial && r.EndedAt == nil:
		c.p.note("incomplete: the run is under way, this is what it had said at %s", at(&o.At))
	case o.Partial:
		c.p.note("incomplete: the run ended %s, and what it said after %s is lost", r.State, at(&o.At))
	}
	return nil
}
