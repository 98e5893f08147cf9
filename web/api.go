package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"pawl/lockrepo/keys"
	"pawl/web/ui"
)

// api serves the lock API over a lock store.
type api struct {
	cfg    Config
	gate   *gate
	routes map[string][]apiRoute // by pattern
}

// call is one request on its way to its handler.
type call struct {
	w    http.ResponseWriter
	r    *http.Request
	key  keys.Key // who asks
	path apiPath
}

func newAPI(cfg Config, g *gate) *api {
	if cfg.API != nil {
		cfg.API = boundedAPI{cfg.API}
	}
	a := &api{cfg: cfg, gate: g, routes: map[string][]apiRoute{}}
	for _, r := range apiRoutes() {
		if r.serve != nil {
			a.routes[r.Pattern] = append(a.routes[r.Pattern], r)
		}
	}
	return a
}

// owns tells whether a path, still percent-encoded, is the lock API's or an artifact's. It has no mux: one would clean the names in paths.
func (a *api) owns(escaped string) bool {
	if a.cfg.Artifacts != nil && strings.HasPrefix(escaped, artifactsPath) {
		return true
	}
	return a.cfg.API != nil && (escaped == "/locks" || strings.HasPrefix(escaped, "/locks/") || strings.HasPrefix(escaped, "/fences/"))
}

// patternOf is the pattern that a path, still percent-encoded, fits, and the name in it.
func patternOf(escaped string) (string, apiPath, bool) {
	if escaped == "/locks" {
		return escaped, apiPath{}, true
	}
	if name, is := strings.CutPrefix(escaped, artifactsPath); is {
		p, ok := artifactPath(name)
		return artifactsPath + "{name}", p, ok
	}
	kind, rest, _ := strings.Cut(strings.TrimPrefix(escaped, "/"), "/")
	pattern := map[string]string{"locks": "/locks/{resource}", "fences": "/fences/{target}"}[kind]
	p, ok := parsePath(rest)
	if p.Action != "" {
		pattern += "/" + p.Action
	}
	return pattern, p, ok
}

// ServeHTTP finds the route, lets the key in that it asks for, and answers what its handler refuses.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pattern, path, ok := patternOf(ui.EscapedPath(r.URL))
	routes := a.routes[pattern]
	if !ok || len(routes) == 0 {
		problem(w, r, a.cfg.BasePath, notFound, "Nothing is here: names of locks are percent-encoded, and no address ends in a slash.")
		return
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	i := slices.IndexFunc(routes, func(route apiRoute) bool { return route.Method == method })
	if i < 0 {
		refuseMethod(w, r, a.cfg.BasePath, allowed(routes))
		return
	}
	c := &call{w: w, r: r, path: path}
	w.Header().Set("Cache-Control", "no-store")
	if err := a.admit(c, routes[i]); err != nil {
		a.refuse(r.Context(), c, err)
	}
}

// admit calls the route's handler for who may call it.
func (a *api) admit(c *call, route apiRoute) (err error) {
	if c.key, err = a.gate.admit(c.r, route.Role); err != nil {
		return err
	}
	// A name under the prefix may still be checked, a name with a fault is judged with the other values.
	if strings.HasPrefix(route.Pattern, "/locks/") && len(c.path.Faults) == 0 {
		if err := reaches(c.key, c.path.Resource); err != nil {
			return err
		}
	}
	return route.serve(a, c)
}

// reaches refuses a lock that isn't under the key's prefix.
func reaches(k keys.Key, lock string) error {
	if strings.HasPrefix(lock, k.Prefix) {
		return nil
	}
	return refuse(forbidden, "This key reaches only locks whose names begin with "+strconv.Quote(k.Prefix)+": use such a name, or another key.")
}

// refuse answers with the problem that err is, and logs what the client isn't told.
func (a *api) refuse(ctx context.Context, c *call, err error) {
	p, level := problemOf(err), slog.LevelDebug
	switch p.kind.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		level = slog.LevelInfo
	case http.StatusServiceUnavailable:
		if !errors.Is(ctx.Err(), context.Canceled) { // else the client has gone: nobody is refused anything
			level = slog.LevelWarn
		}
		p.detail = away(c.r, err)
	}
	a.cfg.Logger.Log(ctx, level, "web: refused", "slug", p.kind.slug, "method", c.r.Method, "lock", c.path.Resource,
		"key", c.key.Name, "request_id", requestID(c.w), "error", err)
	p.answer(c.w, c.r, a.cfg.BasePath)
}

// allowed lists the methods of a path as Allow does.
func allowed(routes []apiRoute) string {
	var methods []string
	for _, r := range routes {
		methods = append(methods, r.Method)
		if r.Method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

// refuseMethod answers OPTIONS, and any method that the address doesn't have.
func refuseMethod(w http.ResponseWriter, r *http.Request, base, allow string) {
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", allow+", OPTIONS")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Allow", allow)
	problem(w, r, base, methodNotAllowed, "Use one of "+allow+" here.")
}
