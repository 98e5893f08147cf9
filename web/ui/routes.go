package ui

import (
	"net/http"

	"pawl/lockrepo/keys"
)

// Routes is the one table of the pages. The first that matches serves.
func Routes() []Route {
	var all []Route
	for _, part := range [][]Route{
		{
			{Method: http.MethodGet, Pattern: "/ui/static/{hash}/{file}", serve: (*UI).static},
			{Method: http.MethodGet, Pattern: "/ui/sign-in", serve: (*UI).signInForm},
			{Method: http.MethodPost, Pattern: "/ui/sign-in", serve: (*UI).signIn},
			{Method: http.MethodPost, Pattern: "/ui/sign-out", serve: (*UI).signOut},
			{Method: http.MethodPost, Pattern: "/ui/prefs/theme", serve: (*UI).setTheme},
			{Method: http.MethodPost, Pattern: "/ui/prefs/zone", serve: (*UI).setZone},
		},
		actRoutes(),
		recordRoutes(),
		{{Method: http.MethodGet, Pattern: "/ui/locks", Role: keys.Reader, serve: (*UI).locks}},
		{
			{Method: http.MethodGet, Pattern: "/ui/jobs", Role: keys.Reader, serve: (*UI).jobs},
			{Method: http.MethodGet, Pattern: "/ui/jobs/{job}", Role: keys.Reader, serve: (*UI).job},
			{Method: http.MethodGet, Pattern: "/ui/periods/{job}", Role: keys.Reader, serve: (*UI).periods},
			{Method: http.MethodGet, Pattern: "/ui/periods/{job}/{key}", Role: keys.Reader, serve: (*UI).period},
			{Method: http.MethodGet, Pattern: "/ui/runs", Role: keys.Reader, serve: (*UI).runs},
			{Method: http.MethodGet, Pattern: "/ui/runs/{id}", Role: keys.Reader, serve: (*UI).run},
			{Method: http.MethodGet, Pattern: "/ui/queue", Role: keys.Reader, serve: (*UI).queue},
		},
		lockRoutes(),
		partRoutes(),
	} {
		all = append(all, part...)
	}
	return all
}

// partRoutes are what runs have done beyond the database: to other systems, and files.
func partRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Pattern: "/ui/effects", Role: keys.Reader, serve: (*UI).effects},
		{Method: http.MethodGet, Pattern: "/ui/outbox", Role: keys.Reader, serve: (*UI).outbox},
		{Method: http.MethodGet, Pattern: "/ui/artifacts", Role: keys.Reader, serve: (*UI).artifacts},
		{Method: http.MethodGet, Pattern: "/ui/artifacts/{name}", Role: keys.Reader, serve: (*UI).artifact},
		{Method: http.MethodGet, Pattern: "/ui/artifacts/{name}/versions/{version}", Role: keys.Reader, serve: (*UI).download},
	}
}

// lockRoutes are the overview, and what there is to see of locks.
func lockRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Pattern: "/", Role: keys.Reader, serve: (*UI).overview},
		{Method: http.MethodGet, Pattern: "/ui/locks/{name}", Role: keys.Reader, serve: (*UI).lock},
		{Method: http.MethodGet, Pattern: "/ui/stale-claims", Role: keys.Reader, serve: (*UI).claims},
		{Method: http.MethodGet, Pattern: "/ui/refusals", Role: keys.Reader, serve: (*UI).refusals},
	}
}
