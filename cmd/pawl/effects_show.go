package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

func (c *cli) effectsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show all that is known of one effect", Args: exactly("ID"),
		Long: `Show all that is known of one effect: what was asked for and answered, and the idempotency key under which the
receiver knows it. It is one try: a failed one has a next, with an ID of its own.`,
		Example: `  pawl effects show 4711`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := effectID(args[0])
			if err != nil {
				return err
			}
			return c.withHistory(cmd.Context(), func(_ *database, h *jobs.History) error {
				found, err := h.Effects(cmd.Context(), jobs.EffectFilter{ID: id})
				switch {
				case err != nil:
					return err
				case len(found) == 0:
					return fmt.Errorf("%w %d: list them with: pawl effects ls", jobs.ErrUnknownEffect, id)
				case c.p.json:
					return c.p.value(found[0])
				}
				c.p.fields(effectFields(found[0]))
				return nil
			})
		},
	}
}

func effectID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, usage("ID is %q: use a number from pawl effects ls", text)
	}
	return id, nil
}

func effectFields(e jobs.EffectInfo) [][2]string {
	return [][2]string{
		{"effect", strconv.FormatInt(e.ID, 10)},
		{"job", e.Job},
		{"period", e.Key + ", " + orElse(e.Period, "no longer kept")},
		{"revision", strconv.Itoa(e.Revision)},
		{"key", e.Effect},
		{"try", strconv.Itoa(e.Try)},
		{"idempotency key", e.IdempotencyKey},
		{"state", stateOfEffect(e)},
		{"request", string(e.Request)},
		{"response", string(e.Response)},
		{"error", or(e.Error)},
		{"sends", strconv.Itoa(e.Sends)},
		{"token", token(e.Token)},
		{"intended", at(&e.At)},
		{"ended", at(e.EndedAt)},
		{"valid until", at(e.ValidUntil)},
		{"decided by", or(e.DecidedBy)},
		{"reason", or(e.Reason)},
		{"matched", at(e.MatchedAt)},
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
