package web

import (
	"errors"
	"net/http"

	"pawl/lockrepo"
)

// problemOf is what the client is told of an error. What isn't known here is unavailable, never a 500: an answer that
// couldn't be had says nothing about the lock.
func problemOf(err error) *problemError {
	var p *problemError
	var bad malformedError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &bad):
		return refuse(malformed, string(bad))
	case errors.Is(err, lockrepo.ErrNotFound):
		return refuse(notFound, "Nobody holds this lock: it never existed, was released, or its lease has expired.")
	case errors.Is(err, lockrepo.ErrMismatch):
		return refuse(ownerMismatch, "Another owner or another key holds this lock: acquire it when it is free.")
	case errors.Is(err, lockrepo.ErrPrecondition):
		return refuse(preconditionFailed, "Another token than the one of If-Match is current: read the lock, or acquire it again.")
	case errors.Is(err, lockrepo.ErrReused):
		return refuse(keyReused, "This Idempotency-Key came with another body before: use a new one for another request.")
	case errors.Is(err, lockrepo.ErrNotHeld):
		return refuse(leaseLost, "The lease has ended and is never revived: stop what it protected and acquire the lock again.")
	}
	return refuse(unavailable, "")
}

// away says why there is no answer, and what to do: who changes something may have changed it.
func away(r *http.Request, err error) string {
	why := "The database " + lockrepo.Reason(err)
	switch {
	case errors.As(err, new(uncheckedError)):
		return why + ", so no key can be checked: ask again."
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return why + ": ask again."
	case r.Header.Get("Idempotency-Key") != "":
		return why + ", so the lock may have been granted or not: ask again with the same Idempotency-Key."
	}
	return why + ", so what was asked may have been done or not: read the lock, or ask again."
}
