package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pawl/jobs"
	"pawl/jobs/schedule"
)

// acted is what came of an act on a job or one of its periods.
type acted struct {
	Job      string `json:"job"`
	Period   string `json:"period"`   // empty: the job as a whole
	Revision int    `json:"revision"` // 0: the latest
	Action   string `json:"action"`
	Owed     int    `json:"owed"` // periods that are owed now because of it

	Sends []jobs.Effect `json:"sends,omitempty"` // what is sent again
}

// act prints what was done.
func (c *cli) act(a acted, format string, args ...any) error {
	if c.p.json {
		return c.p.value(a)
	}
	c.p.line(format, args...)
	return nil
}

// oweFlag says what of the ticks that came during a pause is owed at its end.
func oweFlag(cmd *cobra.Command, owe *string, when string) {
	cmd.Flags().StringVar(owe, "owe", "none", "which of the ticks that came meanwhile are owed "+when+": none, latest or all")
}

func checkOwe(owe string) error {
	switch schedule.CatchUp(owe) {
	case schedule.CatchUpNone, schedule.CatchUpLatest, schedule.CatchUpAll:
		return nil
	}
	return usage("--owe is %q: use none, latest or all", owe)
}

func (c *cli) jobPause() *cobra.Command {
	var note, until, owe string
	cmd := &cobra.Command{
		Use: "pause JOB --note TEXT", Short: "Start no more of a job until it is resumed", Args: exactly("JOB"),
		Long: `Start no more of a job until it is resumed, or until a time. What it owes waits; a run that is under way may
finish; ticks that come meanwhile are held. What a person triggers or reruns runs all the same.

The note is shown wherever the job is, and goes into the audit with who paused it.`,
		Example: `  pawl job pause settle --note "the bank's files are late" --until 2026-09-17T06:00:00Z --owe all
  pawl job pause report --note "maintenance" --until 2h`,
		RunE: func(cmd *cobra.Command, args []string) error {
			note = strings.TrimSpace(note)
			if note == "" {
				return usage("--note is missing: say why, for those who wonder")
			}
			if err := checkOwe(owe); err != nil {
				return err
			}
			cfg := jobs.PauseConfig{Actor: actor(), Note: note, Owe: schedule.CatchUp(owe)}
			var err error
			if cfg.Until, err = untilTime(until, time.Now()); err != nil {
				return err
			}
			return c.withHistory(cmd.Context(), func(db *database, _ *jobs.History) error {
				if err := jobs.Pause(cmd.Context(), db.pool, args[0], cfg); err != nil {
					return err
				}
				end := "until somebody resumes it with: pawl job resume " + clean(args[0])
				if !cfg.Until.IsZero() {
					end = "until " + cfg.Until.UTC().Format(time.RFC3339)
				}
				return c.act(acted{Job: args[0], Action: "pause"}, "%s is paused %s", clean(args[0]), end)
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "why; shown wherever the job is")
	cmd.Flags().StringVar(&until, "until", "", "when it resumes by itself: an instant, or how long from now, as 2h")
	oweFlag(cmd, &owe, "at --until")
	return cmd
}

// untilTime reads an instant or a duration from now; zero for none.
func untilTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	return time.Time{}, usage("--until is %q: write an instant, 2026-09-17T06:00:00Z, or how long from now, 2h", text)
}

func (c *cli) jobResume() *cobra.Command {
	var owe string
	cmd := &cobra.Command{
		Use: "resume JOB", Short: "End a job's pause", Args: exactly("JOB"),
		Long: `End a job's pause. What it owed before goes on. Of the ticks that came meanwhile none is owed, unless --owe
says so; pawl backfill can owe them later too.`,
		Example: `  pawl job resume settle --owe all`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOwe(owe); err != nil {
				return err
			}
			return c.withHistory(cmd.Context(), func(db *database, _ *jobs.History) error {
				n, err := jobs.Resume(cmd.Context(), db.pool, args[0], actor(), schedule.CatchUp(owe))
				if err != nil {
					return err
				}
				return c.act(acted{Job: args[0], Action: "resume", Owed: n}, "%s is resumed; of the ticks that were held %s owed now",
					clean(args[0]), plural(n, "is", "are"))
			})
		},
	}
	oweFlag(cmd, &owe, "now")
	return cmd
}
