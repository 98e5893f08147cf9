package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"pawl/lockrepo/approvals"
	"pawl/lockrepo/keys"
)

// actRoutes are the acts that people may take, each a page of its own: what is to be known before it, and the form.
func actRoutes() []Route {
	var all []Route
	for _, a := range []Route{
		{Pattern: "/ui/locks/{name}/release", serve: (*UI).release},
		{Pattern: "/ui/jobs/pause", serve: (*UI).pauseAll},
		{Pattern: "/ui/jobs/resume", serve: (*UI).resumeAll},
		{Pattern: "/ui/jobs/{job}/pause", serve: (*UI).pause},
		{Pattern: "/ui/jobs/{job}/resume", serve: (*UI).resume},
		{Pattern: "/ui/jobs/{job}/run", serve: (*UI).runNow},
		{Pattern: "/ui/jobs/{job}/backfill", serve: (*UI).backfill},
		{Pattern: "/ui/jobs/{job}/retry", serve: (*UI).retryDead},
		{Pattern: "/ui/periods/{job}/{key}/rerun", serve: (*UI).rerun},
		{Pattern: "/ui/periods/{job}/{key}/retry", serve: (*UI).retry},
		{Pattern: "/ui/periods/{job}/{key}/cancel", serve: (*UI).cancel},
		{Pattern: "/ui/effects/{id}/decide", serve: (*UI).decideEffect},
		{Pattern: "/ui/outbox/{job}/{key}/retry", serve: (*UI).resend},
		{Pattern: "/ui/outbox/{job}/{key}/drop", serve: (*UI).drop},
		{Pattern: "/ui/keys/create", serve: (*UI).createKey},
		{Pattern: "/ui/keys/{id}/revoke", serve: (*UI).revokeKey},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			a.Method, a.Role, a.Acts = method, keys.Operator, true
			all = append(all, a)
		}
	}
	return all
}

// actPage is the page of an act.
type actPage struct {
	Title, Of string // "Pause ", and what
	Button    string // with its object
	Danger    bool
	Steps     []string // what happens
	Facts     []fact
	Hidden    []pair // what the form is made for: it is refused when that is no longer so
	Fields    string // the template of the fields before the reason; empty: none
	Need      int    // the least characters of a reason
	Optional  bool   // a reason may be given
	Crumbs    []crumb
	Back      crumb // where who doesn't act goes

	Sent map[string]string // what was sent and is not right yet
	Err  string
	Bad  string // the field that Err is about
	Data any    // of the fields

	Params []param // that a run may be given
}

// pair is a field that people don't see.
type pair struct{ Name, Value string }

// crumb is a way back.
type crumb struct{ Path, Name string }

// fact is one thing to know before.
type fact struct {
	Name, Value string
	At          *time.Time // shown as a time, with Value after it
	Href        string     // below the base
	Code        bool
}

// Reason is the text that was sent.
func (a *actPage) Reason() string { return a.Sent["reason"] }

// Is tells whether a field has this value: as it was sent, or by default.
func (a *actPage) Is(name, value, otherwise string) bool {
	if sent, ok := a.Sent[name]; ok {
		return sent == value
	}
	return value == otherwise
}

// fieldError is what is wrong with one field of a form: the form is shown again.
type fieldError struct{ field, sentence string }

func (e *fieldError) Error() string { return "ui: " + e.field + ": " + e.sentence }

// act serves both methods of an act: its page, or doing it. What is wrong with a field shows the page again, with the text
// that was sent. do returns where to go on.
func (u *UI) act(q *request, build func(ctx context.Context) (*actPage, error), do func(ctx context.Context) (string, error)) error {
	if u.cfg.Acts == nil {
		return notFound("Nobody can act here.")
	}
	ctx, cancel := context.WithTimeout(q.r.Context(), actTimeout)
	defer cancel()
	var bad *fieldError
	if q.r.Method == http.MethodPost {
		if err := q.form(); err != nil {
			return err
		}
		to, err := do(ctx)
		if err == nil {
			return u.to(q, to)
		}
		if !errors.As(err, &bad) {
			return err
		}
	}
	a, err := build(ctx)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if bad != nil {
		status, a.Err, a.Bad, a.Sent = http.StatusUnprocessableEntity, bad.sentence, bad.field, map[string]string{}
		for name, values := range q.r.PostForm {
			a.Sent[name] = values[0]
		}
	}
	u.show(ctx, q, status, view{Name: "act", Title: a.Title + a.Of, Nav: navOf(a), Data: a})
	return nil
}

const actTimeout = 25 * time.Second // of many periods, or many jobs

func navOf(a *actPage) string {
	if len(a.Crumbs) == 0 {
		return ""
	}
	return strings.TrimPrefix(a.Crumbs[0].Path, "/ui/")
}

const mostReason = 2000

// reason is the text that says why, of at least need characters.
func (q *request) reason(need int) (string, error) {
	text := strings.TrimSpace(strings.ReplaceAll(q.r.PostForm.Get("reason"), "\r\n", "\n"))
	switch n := utf8.RuneCountInString(text); {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", &fieldError{"reason", "The reason has characters that are not text: write it anew."}
	case n < need && need == 1:
		return "", &fieldError{"reason", "Say why: whoever reads the audit log will ask."}
	case n < need:
		return "", &fieldError{"reason", fmt.Sprintf("The reason has %d %s: give at least %d, for those who approve and read the audit log.", n, plural(n, "character", "characters"), need)}
	case n > mostReason:
		return "", &fieldError{"reason", fmt.Sprintf("The reason has %d characters: give at most %s.", n, comma(mostReason))}
	}
	return text, nil
}

// person is who looks, for the rules about two people.
func (q *request) person() approvals.Person {
	return approvals.Person{ID: q.user.ID, Name: q.user.Name, Approver: q.user.Approver}
}

// addr is an address below the base, of segments that are percent-encoded here.
func addr(segments ...string) string { return (&page{}).URL(segments...) }
