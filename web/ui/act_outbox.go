package ui

import (
	"context"
	"strconv"

	"pawl/jobs"
)

// resend sends a dead message again, and drop gives it up: what pawl job retry and pawl job cancel do to its period.
func (u *UI) resend(q *request) error {
	return u.actMessage(q, "Retry", func(ctx context.Context, by jobs.By) error {
		return u.cfg.Acts.Retry(ctx, q.args["job"], q.args["key"], by)
	})
}

func (u *UI) drop(q *request) error {
	return u.actMessage(q, "Drop", func(ctx context.Context, by jobs.By) error {
		return u.cfg.Acts.Cancel(ctx, q.args["job"], q.args["key"], by)
	})
}

func (u *UI) actMessage(q *request, verb string, do func(context.Context, jobs.By) error) error {
	return u.act(q, func(ctx context.Context) (*actPage, error) { return u.messagePage(ctx, q, verb) }, func(ctx context.Context) (string, error) {
		by, err := q.by(1)
		switch {
		case err != nil:
			return "", err
		case by.Seen.State != "dead": // a form for what isn't dead is none of ours
			return "", badForm()
		}
		if _, err := u.message(ctx, q); err != nil {
			return "", err
		}
		return addr("ui", "outbox"), do(ctx, by)
	})
}

// message is the one of the address, whose period may be of no other job than an outbox.
func (u *UI) message(ctx context.Context, q *request) (m jobs.MessageInfo, err error) {
	list, err := u.cfg.Jobs.Messages(ctx, jobs.MessageFilter{Outbox: q.args["job"], Key: q.args["key"], Limit: 1})
	switch {
	case err != nil:
		return m, err
	case len(list) == 0:
		return m, notFound("There is no such message: it never was, or it is so old that it was removed.")
	case list[0].State != "dead":
		return m, stale("It is "+list[0].State+" by now: only a dead message is retried or dropped here.", addr("ui", "outbox"), "Dead messages")
	}
	return list[0], nil
}

func (u *UI) messagePage(ctx context.Context, q *request, verb string) (*actPage, error) {
	m, err := u.message(ctx, q)
	if err != nil {
		return nil, err
	}
	if _, err := u.live(ctx, m.Outbox); err != nil {
		return nil, err
	}
	back := crumb{addr("ui", "outbox"), "Outbox"}
	of := "message " + strconv.FormatInt(m.Seq, 10) + " of " + m.MessageKey
	a := &actPage{
		Title: verb + " ", Of: of, Button: verb + " " + of, Need: 1, Facts: messageFacts(m), Danger: verb == "Drop",
		Hidden: []pair{{"state", m.State}, {"revision", strconv.Itoa(m.Revision)}},
		Crumbs: []crumb{{"/ui/jobs", "Jobs"}, {addr("ui", "jobs", m.Outbox), m.Outbox}, back}, Back: crumb{back.Path, "Leave it"},
	}
	if m.Token != 0 {
		a.Hidden = append(a.Hidden, pair{"token", strconv.FormatInt(m.Token, 10)})
	}
	a.Steps = []string{"It is sent again, with all its retries and the same idempotency key.", "What is behind it in its key waits on until it is sent."}
	if verb == "Drop" {
		a.Steps = []string{"It is never sent.", "What is behind it in its key goes on. A receiver that counts sees a gap in the numbers."}
	}
	return a, nil
}

// messageFacts are for operators, who may see what is sent.
func messageFacts(m jobs.MessageInfo) []fact {
	facts := []fact{
		{Name: "Outbox", Value: m.Outbox, Href: addr("ui", "jobs", m.Outbox)},
		{Name: "Key", Value: m.MessageKey},
		{Name: "Number in the key", Value: strconv.FormatInt(m.Seq, 10)},
		{Name: "It is", Value: m.State + ", after " + strconv.Itoa(m.Attempts) + " " + plural(m.Attempts, "run", "runs"), Href: addr("ui", "periods", m.Outbox, m.Key)},
		{Name: "Enqueued", At: &m.At},
	}
	if m.EndedAt != nil {
		facts = append(facts, fact{Name: "Dead since", At: m.EndedAt})
	}
	facts = append(facts, fact{Name: "Behind it", Value: behindText(m)})
	if m.Error != "" {
		facts = append(facts, fact{Name: "Error", Value: brief(m.Error)})
	}
	const most = 4 << 10
	body := asText(m.Body)
	if len(body) > most {
		body = asText([]byte(body[:most])) + "…"
	}
	return append(facts, fact{Name: "Message", Value: body, Code: true})
}
