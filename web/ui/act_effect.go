package ui

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"pawl/jobs"
)

// decideEffect says what has become of an effect of which nobody knew.
func (u *UI) decideEffect(q *request) error {
	id, err := strconv.ParseInt(q.args["id"], 10, 64)
	if err != nil || id < 1 {
		return jobs.ErrUnknownEffect
	}
	return u.act(q, func(ctx context.Context) (*actPage, error) { return u.effectPage(ctx, id) }, func(ctx context.Context) (string, error) {
		d, err := q.decision()
		if err != nil {
			return "", err
		}
		reason, err := q.reason(leastReason)
		if err != nil {
			return "", err
		}
		return addr("ui", "effects"), u.cfg.Acts.DecideEffect(ctx, id, d, q.user.Name, reason)
	})
}

// decision is what the form says, and of which effect as it stood.
func (q *request) decision() (d jobs.EffectDecision, err error) {
	form := q.r.PostForm
	sends, err := strconv.Atoi(form.Get("sends"))
	if err != nil || form.Get("state") == "" {
		return d, badForm()
	}
	d = jobs.EffectDecision{State: form.Get("act"), Seen: &jobs.EffectSeen{State: form.Get("state"), Sends: sends}}
	response := strings.TrimSpace(form.Get("response"))
	switch {
	case !slices.Contains([]string{jobs.EffectDone, jobs.EffectFailed, jobs.EffectDropped}, d.State):
		return d, &fieldError{"act", "Say what has become of it: done, failed or dropped."}
	case response != "" && d.State != jobs.EffectDone:
		return d, &fieldError{"response", "Only what is done has a response: leave it empty."}
	case response != "" && !json.Valid([]byte(response)):
		return d, &fieldError{"response", `The response isn’t JSON: write it such as {"ref": "po_81"}, or leave it empty.`}
	case response != "":
		d.Response = json.RawMessage(response)
	}
	return d, nil
}

func (u *UI) effectPage(ctx context.Context, id int64) (*actPage, error) {
	list, err := u.cfg.Jobs.Effects(ctx, jobs.EffectFilter{ID: id, Limit: 1})
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, jobs.ErrUnknownEffect
	}
	e := list[0]
	if !undecided(e) {
		return nil, stale("It is "+e.State+" and its period is "+pick(e.Period == "", "gone", e.Period)+
			": decided is what has no outcome, while no run is at its period.", addr("ui", "effects")+"?job="+url.QueryEscape(e.Job), "Effects of "+e.Job)
	}
	return &actPage{
		Title: "Decide ", Of: "effect " + e.Effect, Button: "Record what has become of " + e.Effect, Danger: true, Need: leastReason, Fields: "effect-fields",
		Steps: []string{
			"Find out first, at the receiver, by the idempotency key.",
			"The next run of the period goes by what you say. The period itself is owed again by a retry.",
		},
		Facts: effectFacts(e), Hidden: []pair{{"state", e.State}, {"sends", strconv.Itoa(e.Sends)}},
		Crumbs: []crumb{{"/ui/jobs", "Jobs"}, {addr("ui", "jobs", e.Job), e.Job}, {addr("ui", "effects"), "Effects"}},
		Back:   crumb{addr("ui", "effects"), "Leave it"},
	}, nil
}

// effectFacts are for operators, who may see what was sent.
func effectFacts(e jobs.EffectInfo) []fact {
	facts := []fact{
		{Name: "Job and period", Value: e.Job + " " + e.Key, Href: addr("ui", "periods", e.Job, e.Key)},
		{Name: "It is", Value: e.State},
		{Name: "Its period is", Value: e.Period},
		{Name: "Intended", At: &e.At},
		{Name: "Sent", Value: strconv.Itoa(e.Sends) + " " + plural(e.Sends, "time", "times")},
		{Name: "Idempotency key", Value: e.IdempotencyKey, Code: true},
		{Name: "Request", Value: asText(e.Request), Code: true},
	}
	if e.ValidUntil != nil {
		facts = append(facts, fact{Name: "The receiver keeps the key until", At: e.ValidUntil})
	}
	if e.Error != "" {
		facts = append(facts, fact{Name: "Error", Value: brief(e.Error)})
	}
	return facts
}
