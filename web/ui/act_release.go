package ui

import (
	"context"
	"errors"
	"strconv"

	"pawl/fence"
	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
)

const leastReason = 10 // characters of a reason for a release by force

// release asks for a lease to be released by force.
func (u *UI) release(q *request) error {
	lock := q.args["name"]
	return u.act(q, func(ctx context.Context) (*actPage, error) { return u.releasePage(ctx, q, lock) }, func(ctx context.Context) (string, error) {
		token, err := strconv.ParseInt(q.r.PostForm.Get("token"), 10, 64)
		if err != nil {
			return "", badForm()
		}
		reason, err := q.reason(leastReason)
		if err != nil {
			return "", err
		}
		asked, err := u.cfg.Acts.RequestRelease(ctx, approvals.Release{
			Lock: lock, Token: token, Reason: reason, Kill: q.r.PostForm.Get("kill") == "yes", By: q.person(),
		})
		switch {
		case errors.Is(err, lockrepo.ErrNotHeld):
			return "", stale("The holder has changed: token "+fence.FormatSeq(token)+" has no lease any more. Nothing was released.", addr("ui", "locks", lock), lock)
		case err != nil && asked.ID == 0:
			return "", err
		case err != nil: // it is released; terminating the rest failed
			u.cfg.Logger.WarnContext(ctx, "ui: after a release by force", "lock", lock, "error", err)
		}
		return addr("ui", "approvals", strconv.FormatInt(asked.ID, 10)), nil
	})
}

// badForm is the answer to a form that isn't one of ours.
func badForm() error {
	return &RefusedError{Status: 400, Title: "Not understood", Detail: "The form lacks what it was made for: load its page anew."}
}

func (u *UI) releasePage(ctx context.Context, q *request, lock string) (*actPage, error) {
	l, err := u.cfg.Locks.Show(ctx, lock)
	if err != nil {
		return nil, err
	}
	if l.State == lockrepo.Free {
		return nil, stale("Nobody holds this lock, so there is nothing to release.", addr("ui", "locks", lock), lock)
	}
	single := false
	if u.cfg.Approvals != nil {
		if single, err = u.cfg.Approvals.SingleOperator(ctx); err != nil {
			return nil, err
		}
	}
	token := fence.FormatSeq(l.Token)
	first := "Another person, who may approve, has 15 minutes to do so. You cannot approve your own request."
	if single && q.user.Approver {
		first = "Single operator is set: it is released at once, without a second person, and the audit log says so."
	}
	back := crumb{addr("ui", "locks", lock), lock}
	ends := fact{Name: "Lease ends, unless renewed", At: l.ExpiresAt, Value: "of " + dur(l.TTL.Duration())}
	if l.State == lockrepo.Stale {
		ends = fact{Name: "Lease ended", At: l.ExpiresAt}
	}
	facts := []fact{
		{Name: "Holder", Value: l.Holder},
		{Name: "Token", Value: token, Code: true},
		{Name: "Held since", At: l.AcquiredAt},
		{Name: "Last beat", At: l.RenewedAt},
		ends,
	}
	asked, err := u.askedOf(ctx, lock)
	if err != nil {
		return nil, err
	}
	for _, r := range asked {
		if r.Token == l.Token {
			id := strconv.FormatInt(r.ID, 10)
			facts = append(facts, fact{Name: "Asked for already", Value: "request " + id + " of " + r.RequestedBy, Href: addr("ui", "approvals", id)})
		}
	}
	return &actPage{
		Title: "Release ", Of: lock, Button: "Request release of " + lock, Danger: true, Need: leastReason, Fields: "release-fields",
		Crumbs: []crumb{{"/ui/locks", "Locks"}, back}, Back: crumb{back.Path, "Keep the lease"},
		Steps: []string{
			first,
			"Token " + token + " stops being valid at once. The next holder gets a higher one.",
			l.Holder + " is not killed. If it is still running, its next write is refused and shown here.",
		},
		Facts:  facts,
		Hidden: []pair{{"token", strconv.FormatInt(l.Token, 10)}},
	}, nil
}
