package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pawl/jobs/jobfile"
	"pawl/jobs/schedule"
)

// plannedTick is one tick of a plan.
type plannedTick struct {
	Job         string `json:"job"`
	Period      string `json:"period"`
	ScheduledAt string `json:"scheduled_at"` // RFC 3339 in UTC
	Local       string `json:"local"`        // RFC 3339 in the job's zone
	Note        string `json:"note"`         // what a change of clocks has to do with it

	zone string
}

func (c *cli) plan() *cobra.Command {
	var config, job, from, to string
	cmd := &cobra.Command{
		Use: "plan --from T --to T", Short: "Print when the jobs of a file are due, without a database", Args: exactly(),
		Long: `Print every tick of a job file's jobs from --from, which is included, to --to, which is excluded: when, in which zone, which period it owes, and what the
changes of clocks do to it. It needs no database.

T is an instant, 2026-09-16T02:15:00Z or 2026-09-16T02:15:00+02:00, or a date or local time, 2026-09-16 or
2026-09-16T02:15, which is each job's own. Jitter moves a start, not the tick.`,
		Example: `  pawl plan --config pawl.yaml --from 2026-10-24 --to 2026-10-27 --job settle`,
		RunE: func(*cobra.Command, []string) error {
			if from == "" || to == "" {
				return usage("--%s is missing: give both ends, as in --from 2026-09-16 --to 2026-09-17", map[bool]string{true: "from", false: "to"}[from == ""])
			}
			file, err := c.goodConfig(config, job, nil)
			if err != nil {
				return err
			}
			plans, err := planJobs(file, job, from, to)
			if err != nil {
				return err
			}
			return c.printPlan(plans)
		},
	}
	configFlag(cmd.Flags(), &config)
	cmd.Flags().StringVar(&job, "job", "", "only this job")
	cmd.Flags().StringVar(&from, "from", "", "the first instant, date or local time, included")
	cmd.Flags().StringVar(&to, "to", "", "the end, excluded (pawl backfill --to includes it: that is a key)")
	return cmd
}

// jobPlan is what of one job's ticks is still to be told.
type jobPlan struct {
	job   *jobfile.Job
	notes []schedule.Note
	next  time.Time // zero: no more
	to    time.Time
}

func planJobs(file *jobfile.File, only, from, to string) ([]*jobPlan, error) {
	var plans []*jobPlan
	for i := range file.Jobs {
		j := &file.Jobs[i]
		if only != "" && j.Name != only {
			continue
		}
		start, err := planTime("from", from, j.Times.Zone())
		if err != nil {
			return nil, err
		}
		end, err := planTime("to", to, j.Times.Zone())
		if err != nil {
			return nil, err
		}
		if !start.Before(end) {
			return nil, usage("--to is %q: give a time after --from, which is %q; --to itself is excluded, so one day is --from 2026-09-16 --to 2026-09-17", to, from)
		}
		p := &jobPlan{job: j, notes: j.Times.Notes(start, end), to: end}
		if j.StartAt.After(start) {
			start = j.StartAt
		}
		p.step(start.Add(-time.Nanosecond))
		plans = append(plans, p)
	}
	return plans, nil
}

// step goes on to the first tick after a time.
func (p *jobPlan) step(after time.Time) {
	if p.next = p.job.Times.Next(after); !p.next.Before(p.to) {
		p.next = time.Time{}
	}
}

// planTime reads an instant, or a local time of zone.
func planTime(flag, text string, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage("--%s is %q: write an instant, 2026-09-16T02:15:00Z, or a date or local time, 2026-09-16 or 2026-09-16T02:15", flag, text)
}

// earliest is the plan with the earliest tick, nil when all have been told.
func earliest(plans []*jobPlan) *jobPlan {
	var least *jobPlan
	for _, p := range plans {
		if !p.next.IsZero() && (least == nil || p.next.Before(least.next)) {
			least = p
		}
	}
	return least
}

// tick takes the next one off the plan.
func (p *jobPlan) tick() plannedTick {
	at, zone := p.next, p.job.Times.Zone()
	t := plannedTick{
		Job: p.job.Name, Period: p.job.Times.Period(at).Key, zone: zone.String(),
		ScheduledAt: at.UTC().Format(time.RFC3339), Local: at.In(zone).Format(time.RFC3339),
	}
	for _, n := range p.notes {
		if n.Covers(at) {
			t.Note = n.Text
		}
	}
	p.step(at)
	return t
}

// printPlan prints the ticks as they are found: there may be many.
func (c *cli) printPlan(plans []*jobPlan) error {
	said := map[string]bool{}
	n := 0
	for p := earliest(plans); p != nil; p = earliest(plans) {
		t := p.tick()
		said[t.Job+t.Note] = true
		if err := c.printTick(t, n, plans); err != nil {
			return err
		}
		n++
	}
	if c.p.json {
		if err := c.p.raw(map[bool]string{true: "[]\n", false: "]\n"}[n == 0]); err != nil {
			return err
		}
	} else if n == 0 {
		c.p.note("no ticks")
	}
	for _, p := range plans {
		for _, note := range p.notes {
			if !said[p.job.Name+note.Text] {
				c.p.note("%s: %s (note)", p.job.Name, note.Text)
			}
		}
		if p.job.Times.Manual() {
			c.p.note("%s: is @manual, so it is never due by itself (note)", p.job.Name)
		}
	}
	return nil
}

func (c *cli) printTick(t plannedTick, n int, plans []*jobPlan) error {
	if c.p.json {
		b, err := json.Marshal(t)
		if err != nil {
			return err
		}
		return c.p.raw(map[bool]string{true: "[", false: ",\n"}[n == 0] + string(b))
	}
	job, zone, period := len("JOB"), len("ZONE"), len("PERIOD")
	for _, p := range plans {
		job, zone = max(job, len(p.job.Name)), max(zone, len(p.job.Times.Zone().String()))
		period = max(period, map[schedule.Kind]int{schedule.Day: 10, schedule.Hour: 19, schedule.PerTick: 20}[p.job.Times.Kind()])
	}
	row := func(cells ...any) string { return fmt.Sprintf("%-*s  %-*s  %-20s  %-25s  %-*s  %s", cells...) }
	if n == 0 {
		c.p.line("%s", row(job, "JOB", period, "PERIOD", "SCHEDULED (UTC)", "LOCAL", zone, "ZONE", "NOTE"))
	}
	c.p.line("%s", strings.TrimRight(row(job, t.Job, period, t.Period, t.ScheduledAt, t.Local, zone, t.zone, t.Note), " "))
	return nil
}
