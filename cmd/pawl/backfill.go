package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"pawl/jobs"
	"pawl/jobs/jobfile"
)

// backfillFlags are what backfill can be told.
type backfillFlags struct {
	config, from, to  string
	yes, dryRun, wait bool
	given             []string
}

// backfilled is what came of a backfill.
type backfilled struct {
	Job     string                `json:"job"`
	Owed    int                   `json:"owed"` // that are owed now, or would be
	DryRun  bool                  `json:"dry_run"`
	Periods []jobs.BackfillPeriod `json:"periods"` // all of the range
	States  map[string]int        `json:"states"`  // with --wait: how many of them ended how
}

func (c *cli) backfill() *cobra.Command {
	var f backfillFlags
	cmd := &cobra.Command{
		Use: "backfill JOB --from KEY --to KEY", Short: "Owe a job's periods of the past that are not complete", Args: exactly("JOB"),
		Long: `Owe a job's periods of the past, from one key to another, both included. It prints the list first. What is
complete is left out, and what is owed already isn't owed twice; an empty list is exit code 3. Backfilled periods
run oldest first, after what the schedule itself owes, and the schedule goes on as it is.

On a terminal it asks; elsewhere it needs --yes. --dry-run stops after the list. With --config the file's jobs are
stored first, so that it works in a new database. --wait stays until the range has ended: exit code 0 only if all of
it is complete. It needs a pawl serve, or a worker, which runs the job.`,
		Example: `  pawl backfill settle --from 2021-01-01 --to 2025-12-31 --config pawl.yaml --yes --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, x := range [][2]string{{"from", f.from}, {"to", f.to}} {
				if x[1] == "" {
					return usage("--%s is missing: give the first and the last key, both are included, as in --from 2026-09-01 --to 2026-09-30", x[0])
				}
			}
			if !f.yes && !f.dryRun && !readsTerminal(c.stdin) {
				return usage("nobody can be asked here: say --yes, or --dry-run to see the list only")
			}
			params, err := readParams(f.given)
			if err != nil {
				return err
			}
			return c.withHistory(cmd.Context(), func(db *database, h *jobs.History) error {
				return c.backfillJob(cmd.Context(), db, h, args[0], f, params)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.config, "config", "", "a job file, whose jobs are stored first")
	fs.StringVar(&f.from, "from", "", "the first period's key, as 2026-09-01, included")
	fs.StringVar(&f.to, "to", "", "the last period's key, included (pawl plan --to excludes it: that is a time)")
	fs.BoolVar(&f.yes, "yes", false, "don't ask")
	fs.BoolVar(&f.dryRun, "dry-run", false, "only print the list")
	paramFlag(cmd, &f.given)
	fs.BoolVar(&f.wait, "wait", false, "stay until the periods have ended")
	return cmd
}

func readsTerminal(in any) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (c *cli) backfillJob(ctx context.Context, db *database, h *jobs.History, job string, f backfillFlags, params map[string]string) error {
	list, err := c.backfillList(ctx, db, job, f, jobs.BackfillConfig{Params: params})
	if err != nil {
		return err
	}
	out := backfilled{Job: job, DryRun: f.dryRun, Periods: list}
	waiting := 0
	for _, p := range list {
		switch {
		case p.Owe:
			out.Owed++
		case p.State != "complete":
			waiting++
		}
	}
	c.printBackfill(out)
	switch {
	case f.dryRun && out.Owed > 0:
		if c.p.json {
			return c.p.value(out)
		}
		return nil
	case out.Owed == 0 && (f.dryRun || !f.wait || waiting == 0):
		return conflict("nothing to backfill: %s from %s to %s, of which %d are owed already and the others are complete",
			plural(len(list), "period", "periods"), f.from, f.to, waiting)
	case out.Owed > 0 && !f.yes && !c.agrees(plural(out.Owed, "period", "periods")+" of "+job):
		return conflict("nothing was owed: you didn't say yes")
	}
	if out.Owed > 0 {
		if out.Periods, err = jobs.Backfill(ctx, db.pool, job, f.from, f.to, jobs.BackfillConfig{Actor: actor(), Params: params}); err != nil {
			return err
		}
		c.p.note("%s of %s owed now", plural(out.Owed, "period", "periods"), clean(job))
	}
	if !f.wait {
		if c.p.json {
			return c.p.value(out)
		}
		return nil
	}
	return c.await(ctx, h, out)
}

// backfillList stores the file's jobs, if there is a file, and lists the range.
func (c *cli) backfillList(ctx context.Context, db *database, job string, f backfillFlags, with jobs.BackfillConfig) ([]jobs.BackfillPeriod, error) {
	if f.config == "" {
		return jobs.BackfillList(ctx, db.pool, job, f.from, f.to, with)
	}
	file, err := c.goodConfig(f.config, "", c.getenv)
	if err != nil {
		return nil, err
	}
	if fileJob(file, job) == nil {
		return nil, usage("there is no job %q in %s: it has %s", job, f.config, jobNames(file))
	}
	all, err := definitions(file)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(j jobs.Job) bool { return j.Name == job })
	fresh, err := all[i].Owes(f.from, f.to, time.Now()) // a wrong range stores nothing
	if err == nil {
		err = all[i].CheckGiven(with.Params)
	}
	if err != nil {
		return nil, err
	}
	if f.dryRun { // neither does this
		list, err := jobs.BackfillList(ctx, db.pool, job, f.from, f.to, with)
		if errors.Is(err, jobs.ErrUnknownJob) {
			return fresh, nil
		}
		return list, err
	}
	log, err := c.logger()
	if err != nil {
		return nil, err
	}
	r, err := jobs.New(jobs.Config{Pool: db.pool, App: file.App, Logger: log})
	if err != nil {
		return nil, err
	}
	for _, j := range all {
		if err := r.Add(j); err != nil {
			return nil, err
		}
	}
	if err := r.Store(ctx); err != nil {
		return nil, err
	}
	return jobs.BackfillList(ctx, db.pool, job, f.from, f.to, with)
}

// definitions are the file's jobs for who runs none of them.
func definitions(file *jobfile.File) (all []jobs.Job, err error) {
	h := elsewhere(file)
	for i := range file.Jobs {
		j, err := file.Jobs[i].Load(h)
		if err != nil {
			return nil, &jobs.JobError{Job: file.Jobs[i].Name, Err: err}
		}
		j.Func, j.Elsewhere = nil, true
		all = append(all, j)
	}
	return all, nil
}

// printBackfill prints the list: what would run, and how many would not.
func (c *cli) printBackfill(out backfilled) {
	if c.p.json {
		return
	}
	for _, p := range out.Periods {
		if p.Owe {
			c.p.line("%s  %s", clean(p.Key), or(p.State))
		}
	}
	c.p.note("%s; %s are left out, being complete or owed already", plural(out.Owed, "period", "periods"), thousands(int64(len(out.Periods)-out.Owed)))
}

// agrees asks on the terminal.
func (c *cli) agrees(what string) bool {
	c.p.note("Owe %s? [y/N]", what)
	line, err := bufio.NewReader(c.stdin).ReadString('\n')
	return err == nil && strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y")
}

// awaitEvery is how often it is asked how far the periods are.
const awaitEvery = 250 * time.Millisecond

// await stays until none of the periods is owed any more.
func (c *cli) await(ctx context.Context, h *jobs.History, out backfilled) error {
	keys := make([]string, len(out.Periods))
	for i, p := range out.Periods {
		keys[i] = p.Key
	}
	bar := c.p.progress("backfill of " + out.Job)
	defer bar.end()
	tick := time.NewTicker(awaitEvery)
	defer tick.Stop()
	for {
		states, err := h.States(ctx, out.Job, keys)
		switch {
		case ctx.Err() != nil:
			return &coded{codeFailed, errors.New("not waited for any longer: the periods stay owed")}
		case err != nil && codeOf(err) != codeUnreachable: // a database that is away comes back
			return err
		case err == nil && states["open"]+states["running"] == 0:
			bar.end()
			out.States = states
			return c.awaited(out, len(keys))
		case err == nil:
			bar.at(int64(len(keys)-states["open"]-states["running"]), int64(len(keys)))
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (c *cli) awaited(out backfilled, n int) error {
	if c.p.json {
		if err := c.p.value(out); err != nil {
			return err
		}
	}
	if out.States["complete"] == n {
		c.p.note("all %s complete", plural(n, "period is", "periods are"))
		return nil
	}
	c.p.note("pawl: of %s %d are not complete: see pawl job history %s --periods", plural(n, "period", "periods"), n-out.States["complete"], clean(out.Job))
	return said(codeFailed)
}
