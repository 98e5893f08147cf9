package ui

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"pawl/jobs"
	"pawl/lockrepo"
)

// RefusedError is an answer that isn't what was asked for: a page with one sentence that says what to do.
type RefusedError struct {
	Status int
	Title  string
	Detail string
	Href   string // where to go on, below the base; empty: the overview
	Link   string // what that is called
}

func (e *RefusedError) Error() string { return "ui: " + e.Title + ": " + e.Detail }

func notFound(detail string) *RefusedError {
	return &RefusedError{Status: http.StatusNotFound, Title: "Not found", Detail: detail}
}

// stale says that what a form was made for is no longer so.
func stale(detail, href, link string) *RefusedError {
	return &RefusedError{Status: http.StatusConflict, Title: "It has changed meanwhile", Detail: detail, Href: href, Link: link}
}

// refusalOf says in words what went wrong. An error that isn't known here is the database's.
func refusalOf(err error) *RefusedError {
	var known *RefusedError
	var state *jobs.PeriodStateError
	act := actRefusal(err)
	switch {
	case errors.As(err, &known):
		return known
	case act != nil:
		return act
	case errors.As(err, &state):
		return &RefusedError{Status: http.StatusConflict, Title: "Not in this state", Detail: sentence(state.Error())}
	case errors.Is(err, jobs.ErrUnknownJob):
		return notFound("There is no job of that name.")
	case errors.Is(err, lockrepo.ErrNotFound):
		return notFound("There is no lock of that name: it was never taken, or it was idle for so long that it was removed.")
	case errors.Is(err, lockrepo.ErrNotHeld):
		return stale("The holder has changed: that token has no lease any more.", "/ui/locks", "All locks")
	case errors.Is(err, lockrepo.ErrInput):
		return &RefusedError{Status: http.StatusUnprocessableEntity, Title: "Not understood", Detail: sentence(err.Error())}
	default:
		return &RefusedError{Status: http.StatusServiceUnavailable, Title: "No answer", Detail: "The database " + reason(err) + ". The page asks again by itself."}
	}
}

// fail shows what went wrong. Who isn't known is asked to sign in, where that is possible.
func (u *UI) fail(ctx context.Context, q *request, err error) {
	if errors.Is(err, ErrSignIn) {
		u.askWho(ctx, q)
		return
	}
	e := refusalOf(err)
	if e.Status == http.StatusServiceUnavailable && !errors.Is(err, context.Canceled) {
		u.cfg.Logger.WarnContext(ctx, "ui: page is not answered", "path", q.r.URL.Path, "error", err)
		q.w.Header().Set("Retry-After", "2")
	} else {
		u.cfg.Logger.DebugContext(ctx, "ui: refused", "path", q.r.URL.Path, "user", q.user.Name, "error", err)
	}
	u.show(ctx, q, e.Status, view{Name: "refusal", Title: e.Title, Data: e})
}

// askWho leads to the sign-in, and back from there.
func (u *UI) askWho(ctx context.Context, q *request) {
	if u.cfg.SignIn == nil {
		u.show(ctx, q, http.StatusUnauthorized, view{Name: "refusal", Title: "Sign in", Data: &RefusedError{Title: "Sign in", Detail: "Whatever signs people in before this page sent nobody's name."}})
		return
	}
	if q.r.Method != http.MethodGet {
		u.show(ctx, q, http.StatusUnauthorized, view{Name: "sign-in", Title: "Sign in", Data: signInPage{}})
		return
	}
	next := u.cfg.BasePath + "/ui/sign-in?next=" + url.QueryEscape(u.cfg.BasePath+q.r.URL.RequestURI())
	http.Redirect(q.w, q.r, next, http.StatusSeeOther)
}
