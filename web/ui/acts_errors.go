package ui

import (
	"errors"
	"net/http"

	"pawl/jobs"
	"pawl/jobs/schedule"
	"pawl/lockrepo/approvals"
	"pawl/lockrepo/keys"
)

// actRefusal says in words why an act was refused, nil if it isn't known here. Nothing was done then.
func actRefusal(err error) *RefusedError {
	var decided *approvals.DecidedError
	var field *schedule.FieldError
	var config *jobs.ConfigError
	switch {
	case errors.Is(err, jobs.ErrChanged):
		return stale(sentence(err.Error())+" Nothing was done.", "/ui/jobs", "All jobs")
	case errors.Is(err, jobs.ErrPaused):
		return stale("Somebody has paused it already.", "/ui/jobs", "All jobs")
	case errors.Is(err, jobs.ErrNotPaused):
		return stale("It is not paused any more.", "/ui/jobs", "All jobs")
	case errors.Is(err, jobs.ErrComplete):
		return stale("Its current period is complete, so it doesn’t run again by itself: rerun the period, with a reason.", "/ui/jobs", "All jobs")
	case errors.Is(err, jobs.ErrRunning):
		return stale("Its current period runs already.", "/ui/runs", "All runs")
	case errors.Is(err, jobs.ErrEffectState):
		return stale(sentence(err.Error())+" Nothing was decided.", "/ui/effects", "All effects")
	case errors.Is(err, jobs.ErrUnknownEffect):
		return notFound("There is no effect of that number.")
	case errors.Is(err, jobs.ErrUnknownPeriod):
		return notFound("Nothing is known of that period: it was never owed, or it is so old that it was removed.")
	case errors.Is(err, jobs.ErrTooMany):
		return &RefusedError{Status: http.StatusUnprocessableEntity, Title: "Too many at once", Detail: sentence(err.Error())}
	case errors.As(err, &field), errors.As(err, &config), errors.Is(err, jobs.ErrState):
		return &RefusedError{Status: http.StatusUnprocessableEntity, Title: "Not understood", Detail: sentence(err.Error())}
	case errors.As(err, &decided):
		return stale("Somebody was faster: "+decided.By+" has "+decided.State+" it.", "/ui/approvals", "All requests")
	case errors.Is(err, approvals.ErrExpired):
		return stale("Nobody decided in time, so the request has expired: ask again if it is still needed.", "/ui/approvals", "All requests")
	case errors.Is(err, approvals.ErrSamePerson):
		return &RefusedError{
			Status: http.StatusForbidden, Title: "A second person has to", Detail: "You cannot approve your own request.",
			Href: "/ui/approvals", Link: "All requests",
		}
	case errors.Is(err, approvals.ErrNotApprover):
		return &RefusedError{
			Status: http.StatusForbidden, Title: "Not yours to decide", Detail: "You may not approve: ask somebody whose key was made with that right.",
			Href: "/ui/approvals", Link: "All requests",
		}
	case errors.Is(err, approvals.ErrNotOperator):
		return &RefusedError{Status: http.StatusForbidden, Title: "Not yours to do", Detail: "Your key may not ask for that any more: it was revoked, or it has expired."}
	case errors.Is(err, approvals.ErrNotFound):
		return notFound("There is no request of that number.")
	case errors.Is(err, keys.ErrNotFound):
		return notFound("There is no such key.")
	}
	return nil
}
