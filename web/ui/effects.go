package ui

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	"pawl/jobs"
)

// effectsPage is what runs have asked of other systems, the newest first.
type effectsPage struct {
	Filter  jobs.EffectFilter
	Next    string // the id before which the next page begins; empty: this is the last
	Effects Panel[jobs.EffectInfo]
}

// States are those that an effect may have.
func (effectsPage) States() []string {
	return []string{jobs.EffectUncertain, jobs.EffectIntended, jobs.EffectFailed, jobs.EffectDone, jobs.EffectDropped}
}

func (u *UI) effects(q *request) error {
	query := q.r.URL.Query()
	p := effectsPage{Filter: jobs.EffectFilter{Job: query.Get("job"), Key: query.Get("period"), State: query.Get("state")}}
	if p.Filter.State != "" && !slices.Contains(p.States(), p.Filter.State) {
		return unknownState(p.Filter.State, p.States())
	}
	var err error
	if p.Filter.Before, err = number(query, "before"); err != nil {
		return err
	}
	p = share(q.r.Context(), u.shared, "effects?"+query.Encode(), func(ctx context.Context) effectsPage {
		p.Effects = panel(ctx, perPage, func(ctx context.Context, n int) ([]jobs.EffectInfo, error) {
			f := p.Filter
			f.Limit = n
			return u.cfg.Jobs.Effects(ctx, f)
		})
		if p.Effects.More {
			p.Next = strconv.FormatInt(p.Effects.Rows[len(p.Effects.Rows)-1].ID, 10)
		}
		return p
	})
	return u.render(q, view{Name: "effects", Title: "Effects", Nav: "jobs", Data: p})
}

// number is where a list goes on; 0: at its beginning.
func number(query url.Values, name string) (int64, error) {
	text := query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, notUnderstood("The page " + text + " in " + name + " does not exist: use the link below the list.")
	}
	return n, nil
}

// effectClass marks what somebody should look at.
func effectClass(state string) string {
	switch state {
	case jobs.EffectUncertain:
		return "bad"
	case jobs.EffectFailed, jobs.EffectDropped:
		return "warn"
	case jobs.EffectIntended:
		return "run"
	default:
		return "ok"
	}
}

// undecided tells that a person may say what has become of an effect: nobody knows, and no run is at its period.
func undecided(e jobs.EffectInfo) bool {
	return (e.State == jobs.EffectUncertain || e.State == jobs.EffectIntended) && e.Period != "running" && e.Period != ""
}
