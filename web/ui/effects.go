package ui

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"

	"pawl/jobs"
)

// unmatched is the tab of what reconciliations have found, among the states.
const unmatched = "unmatched"

// effectsPage is what runs have asked of other systems, the newest first; or what those say differently, the oldest first.
type effectsPage struct {
	Filter      jobs.EffectFilter
	Tab         string // unmatched, uncertain or empty: any other state has none
	Next        string // where the next page begins; empty: this is the last
	Effects     Panel[jobs.EffectInfo]
	Differences Panel[jobs.EffectDifference]
}

// States are those that an effect may have.
func (effectsPage) States() []string {
	return []string{jobs.EffectUncertain, jobs.EffectIntended, jobs.EffectFailed, jobs.EffectDone, jobs.EffectDropped}
}

func (u *UI) effects(q *request) error {
	query := q.r.URL.Query()
	p := effectsPage{Filter: jobs.EffectFilter{Job: query.Get("job"), Key: query.Get("period"), State: query.Get("state")}}
	if p.Filter.State == unmatched {
		return u.unmatched(q, p)
	}
	p.Tab = p.Filter.State
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

// unmatched is what reconciliations have found.
func (u *UI) unmatched(q *request, p effectsPage) error {
	query := q.r.URL.Query()
	type answer struct {
		effectsPage
		err error
	}
	f := jobs.DifferenceFilter{Job: p.Filter.Job, Key: p.Filter.Key, After: query.Get("after")}
	got := share(q.r.Context(), u.shared, "effects?"+query.Encode(), func(ctx context.Context) answer {
		a := answer{effectsPage: p}
		a.Tab = unmatched
		a.Differences = panel(ctx, perPage, func(ctx context.Context, n int) (list []jobs.EffectDifference, err error) {
			f.Limit = n
			list, err = u.cfg.Jobs.Differences(ctx, f)
			if errors.Is(err, jobs.ErrCursor) {
				a.err, err = badPlace(), nil
			}
			return list, err
		})
		if a.Differences.More {
			a.Next = a.Differences.Rows[len(a.Differences.Rows)-1].Cursor()
		}
		return a
	})
	if got.err != nil {
		return got.err
	}
	return u.render(q, view{Name: "effects", Title: "Unmatched effects", Nav: "jobs", Data: got.effectsPage})
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

// kindText says what a difference means.
func kindText(kind string) string {
	switch kind {
	case jobs.DifferenceAbsent:
		return "they haven’t got it"
	case jobs.DifferenceStray:
		return "only they have it"
	case jobs.DifferenceBoth:
		return "both have it, not the same"
	default:
		return kind
	}
}

// oursText is what the journal says of it.
func oursText(d jobs.EffectDifference) string {
	if d.State == "" {
		return "no effect has this key"
	}
	return d.State
}

// theirsText is what the other side says of it.
func theirsText(d jobs.EffectDifference) string {
	if d.Kind == jobs.DifferenceAbsent {
		return "nothing"
	}
	return "they have it"
}

// adviceText is what a person can do about a difference.
func adviceText(d jobs.EffectDifference) string {
	switch {
	case d.Kind == jobs.DifferenceAbsent:
		return "Ask them by the key. If it was never done, rerun the period with “send again what was sent to others”; the next reconciliation takes this away."
	case d.Kind == jobs.DifferenceBoth:
		return "Find out who is right, and let the other side be corrected; the next reconciliation takes this away."
	case d.State == "":
		return "Somebody else sends under such keys, or the effect is so old that it was removed: find out who, and let them take it back or leave it."
	case d.State == jobs.EffectUncertain || d.State == jobs.EffectIntended:
		return "It has happened: decide that it is done, and retry the period if that is dead."
	default:
		return "For us it hasn’t happened: ask them to take it back, or leave it and don’t do it again by hand."
	}
}

// decidable tells the same of the effect that a difference is about.
func decidable(d jobs.EffectDifference) bool {
	return d.Effect != nil && undecided(jobs.EffectInfo{State: d.State, Period: d.Period})
}

// undecided tells that a person may say what has become of an effect: nobody knows, and no run is at its period.
func undecided(e jobs.EffectInfo) bool {
	return (e.State == jobs.EffectUncertain || e.State == jobs.EffectIntended) && e.Period != "running" && e.Period != ""
}
