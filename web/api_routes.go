package web

import (
	"net/http"

	"pawl/lockrepo/keys"
)

// apiRoute is what one method does at one address. Roles, dispatch and the description at /openapi.json are read from
// here, and tests compare what was answered with Statuses.
type apiRoute struct {
	Method, Pattern string
	Role            string // the least that a key must have; empty: open to all
	Statuses        []int  // that it can answer, in order; HEAD's are GET's

	serve func(*api, *call) error // nil: the page's mux has it
}

// apiRoutes is the one table of what machines may ask for.
func apiRoutes() []apiRoute {
	const (
		lock  = "/locks/{resource}"
		bad   = http.StatusBadRequest
		no    = http.StatusUnauthorized
		never = http.StatusForbidden
		none  = http.StatusNotFound
		lost  = http.StatusConflict
		other = http.StatusPreconditionFailed
		value = http.StatusUnprocessableEntity
		many  = http.StatusTooManyRequests
		long  = http.StatusRequestHeaderFieldsTooLarge
		away  = http.StatusServiceUnavailable
		// Of a body: too slow, too large, of another type.
		slow, large, media = http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType
	)
	return []apiRoute{
		{http.MethodGet, "/locks", keys.Reader, []int{200, bad, no, never, value, many, long, away}, (*api).list},
		{http.MethodGet, lock, keys.Reader, []int{200, bad, no, never, none, value, many, long, away}, (*api).show},
		{http.MethodPost, lock, keys.Worker, []int{200, bad, no, never, slow, large, media, value, many, long, away}, (*api).acquire},
		{http.MethodDelete, lock, keys.Worker, []int{204, bad, no, never, none, slow, other, large, media, value, many, long, away}, (*api).release},
		{http.MethodPost, lock + "/renew", keys.Worker, []int{200, bad, no, never, none, slow, lost, other, large, media, value, many, long, away}, (*api).renew},
		{http.MethodGet, lock + "/history", keys.Reader, []int{200, bad, no, never, none, value, many, long, away}, (*api).history},
		// It changes nothing, so a reader may ask, though it is a POST.
		{http.MethodPost, "/fences/{target}/check", keys.Reader, []int{200, bad, no, never, slow, lost, large, media, value, many, long, away}, (*api).check},
		{http.MethodGet, "/artifacts/{name}", keys.Reader, []int{200, http.StatusNotModified, bad, no, never, none, http.StatusGone, many, long, away}, (*api).artifact},
		{http.MethodGet, "/api/overview", keys.Reader, []int{200, bad, no, never, many, long, away}, nil},
		{http.MethodGet, "/metrics", "", []int{200, long}, nil},
		{http.MethodGet, "/healthz", "", []int{200, long}, nil},
		{http.MethodGet, "/readyz", "", []int{200, long, away}, nil},
		{http.MethodGet, "/openapi.json", "", []int{200, long}, nil},
		{http.MethodGet, "/docs", "", []int{200, long}, nil},
		{http.MethodGet, "/problems/{slug}", "", []int{200, none, long}, nil},
	}
}

// roleOf is the role that the table asks for.
func roleOf(method, pattern string) string {
	for _, r := range apiRoutes() {
		if r.Method == method && r.Pattern == pattern {
			return r.Role
		}
	}
	return keys.Operator // what the table doesn't know is not for everybody
}
