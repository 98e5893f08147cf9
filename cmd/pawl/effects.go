package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

func (c *cli) effects() *cobra.Command {
	cmd := &cobra.Command{
		Use: "effects", Short: "See what jobs have done to others, and decide what nobody knows", Args: noCommand, RunE: help,
		Long: `See what jobs have done to systems that can't check a token: each effect's intent and what became of it. An
effect of which nobody knows whether it has happened waits for a person who finds out and decides.`,
	}
	cmd.AddCommand(c.effectsList(), c.effectsShow(), c.effectsDecide())
	return cmd
}

func (c *cli) effectsList() *cobra.Command {
	var f jobs.EffectFilter
	var uncertain, unmatched bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List effects, the newest first", Args: exactly(),
		Example: `  pawl effects ls --uncertain
  pawl effects ls --unmatched --job payout`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if uncertain && (unmatched || f.State != "") || unmatched && f.State != "" {
				return usage("--uncertain, --unmatched and --state don't go together: give one of them")
			}
			if uncertain {
				f.State, f.Left = jobs.EffectOpen, true
			}
			return c.withHistory(cmd.Context(), func(_ *database, h *jobs.History) error {
				if unmatched {
					rows, err := h.Unmatched(cmd.Context(), f.Job, f.Limit)
					if err == nil && len(rows) == 0 {
						err = known(cmd.Context(), h, f.Job, "")
					}
					if err != nil {
						return err
					}
					return list(c.p, rows, "both sides say the same, as far as they were compared", []string{"JOB", "KIND", "EFFECT", "SINCE", "KEY", "DETAIL"}, differenceCells)
				}
				rows, err := h.Effects(cmd.Context(), f)
				if err == nil && len(rows) == 0 {
					err = known(cmd.Context(), h, f.Job, f.Key)
				}
				if err != nil {
					return err
				}
				now := time.Now()
				return list(c.p, rows, "no such effects", []string{"ID", "JOB", "PERIOD", "EFFECT", "TRY", "STATE", "SENDS", "SINCE", "SAID"}, func(e jobs.EffectInfo) []string { return effectCells(now, e) })
			})
		},
	}
	cmd.Flags().BoolVar(&uncertain, "uncertain", false, "only those of which nobody knows whether they have happened, and that no run is at")
	cmd.Flags().BoolVar(&unmatched, "unmatched", false, "what reconciliations have found that the other side says differently")
	cmd.Flags().StringVar(&f.State, "state", "", "only intended, done, failed, uncertain or dropped ones, or open: intended and uncertain")
	cmd.Flags().StringVar(&f.Job, "job", "", "only those of this job")
	cmd.Flags().StringVar(&f.Key, "period", "", "only those of this period")
	cmd.Flags().Int64Var(&f.Before, "before", 0, "only ids before this one: the last of the page before")
	limitFlag(cmd, &f.Limit)
	return cmd
}

func effectCells(now time.Time, e jobs.EffectInfo) []string {
	said := e.Error
	if e.Reason != "" {
		said = e.DecidedBy + ": " + e.Reason
	}
	return []string{
		strconv.FormatInt(e.ID, 10), e.Job, e.Key, e.Effect, strconv.Itoa(e.Try), stateOfEffect(e), strconv.Itoa(e.Sends), ago(now, &e.At), or(short(said)),
	}
}

func stateOfEffect(e jobs.EffectInfo) string {
	if e.UnderWay {
		return e.State + ", under way"
	}
	return e.State
}

func differenceCells(d jobs.EffectDifference) []string {
	id := "-"
	if d.Effect != nil {
		id = strconv.FormatInt(*d.Effect, 10)
	}
	return []string{d.Job, d.Kind, id, at(&d.FirstAt), d.IdempotencyKey, or(short(d.Detail))}
}

// short is the beginning of one line.
func short(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > 60 {
		s = string(r[:59]) + "…"
	}
	return s
}

// decided is what came of a decision.
type decided struct {
	ID    int64  `json:"id"`
	State string `json:"state"`
}

func (c *cli) effectsDecide() *cobra.Command {
	var reason, response string
	cmd := &cobra.Command{
		Use: "decide ID done|failed|dropped --reason TEXT", Short: "Say what has become of an effect of which nobody knows", Args: exactly("ID", "DECISION"),
		Long: `Say what has become of an effect of which nobody knows. Find out first, at the receiver.

  done     it has happened: the next run of its period goes on as after a call
  failed   it has not happened: the next run does it, under a new idempotency key
  dropped  it is given up: the next run is told so and doesn't do it

The period itself is owed again with: pawl job retry. Who decided, and why, goes into the audit.`,
		Example: `  pawl effects decide 4711 done --response '{"ref":"po_81"}' --reason "the bank has it, says Ms Ito"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := effectID(args[0])
			if err != nil {
				return err
			}
			d := jobs.EffectDecision{State: args[1]}
			switch {
			case d.State != jobs.EffectDone && d.State != jobs.EffectFailed && d.State != jobs.EffectDropped:
				return usage("DECISION is %q: use done, failed or dropped", d.State)
			case response != "" && (d.State != jobs.EffectDone || !json.Valid([]byte(response))):
				return usage("--response is %q: give JSON, and only with done", response)
			case response != "":
				d.Response = json.RawMessage(response)
			}
			if err := checkReason(reason); err != nil {
				return err
			}
			return c.withHistory(cmd.Context(), func(db *database, _ *jobs.History) error {
				if err := jobs.DecideEffect(cmd.Context(), db.pool, id, d, actor(), strings.TrimSpace(reason)); err != nil {
					return err
				}
				if c.p.json {
					return c.p.value(decided{id, d.State})
				}
				c.p.line("%s", fmt.Sprintf("effect %d is %s", id, d.State))
				return nil
			})
		},
	}
	reasonFlag(cmd, &reason)
	cmd.Flags().StringVar(&response, "response", "", "what the receiver has answered, as JSON, for a done one; default null")
	return cmd
}
