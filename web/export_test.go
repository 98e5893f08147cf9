package web

import (
	"net/http"
	"slices"
	"strings"

	"pawl/web/ui"
)

// APIRoute is one row of the table of routes.
type APIRoute = apiRoute

// APIRoutes is the table of routes.
func APIRoutes() []APIRoute { return apiRoutes() }

// RouteOf is the row of the table that a request fits; false where there is none.
func RouteOf(r *http.Request) (APIRoute, bool) {
	method, path := r.Method, ui.EscapedPath(r.URL)
	if method == http.MethodHead {
		method = http.MethodGet
	}
	pattern, _, ok := path, apiPath{}, true
	switch {
	case strings.HasPrefix(path, "/artifacts/"):
		pattern, _, ok = patternOf(path)
	case path == "/locks" || strings.HasPrefix(path, "/locks/") || strings.HasPrefix(path, "/fences/"):
		pattern, _, ok = patternOf(path)
	case strings.HasPrefix(path, "/problems/") && strings.Count(path, "/") == 2 && path != "/problems/":
		pattern = "/problems/{slug}"
	}
	routes := apiRoutes()
	i := slices.IndexFunc(routes, func(route apiRoute) bool { return route.Method == method && route.Pattern == pattern })
	if !ok || i < 0 {
		return APIRoute{}, false
	}
	return routes[i], true
}

// Slugs are the names of all problems.
func Slugs() []string {
	var all []string
	for _, k := range kinds() {
		all = append(all, k.slug)
	}
	return all
}
