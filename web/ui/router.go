package ui

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Route is what one method does at one address. Dispatch, roles and tests read the one table of them.
type Route struct {
	Method  string
	Pattern string // segments; {name} stands for one, percent-encoded as it may be
	Role    string // the least that a user needs; empty: open to all
	Acts    bool   // it changes something: never where everything is read only
	Decides bool   // it decides what others ask for: who may approve may, and an operator, whatever else Role lets in

	serve func(*UI, *request) error
}

// match finds the names in a path that is still percent-encoded: %2F stays apart from /.
func (r Route) match(escaped string) (map[string]string, bool) {
	want, have := strings.Split(r.Pattern, "/"), strings.Split(escaped, "/")
	if len(want) != len(have) {
		return nil, false
	}
	args := map[string]string{}
	for i, w := range want {
		name, ok := strings.CutPrefix(w, "{")
		if !ok {
			if w != have[i] {
				return nil, false
			}
			continue
		}
		value, err := url.PathUnescape(have[i])
		if err != nil || value == "" {
			return nil, false
		}
		args[strings.TrimSuffix(name, "}")] = value
	}
	return args, true
}

// find is the route of a request, or the methods that its address has. A literal segment goes before a name.
func (u *UI) find(method, escaped string) (route Route, args map[string]string, allow []string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, r := range u.routes {
		a, ok := r.match(escaped)
		switch {
		case ok && r.Method == method:
			return r, a, nil
		case ok && !slices.Contains(allow, r.Method):
			allow = append(allow, r.Method)
		}
	}
	if slices.Contains(allow, http.MethodGet) {
		allow = append(allow, http.MethodHead)
	}
	slices.Sort(allow)
	return Route{}, nil, allow
}

// EscapedPath is the path as it was sent: %2F stays apart from /, also beside bytes that should have been encoded. Who
// mounts the pages has taken the base off.
func EscapedPath(u *url.URL) string {
	if path, err := url.PathUnescape(u.RawPath); err == nil && u.RawPath != "" && path == u.Path {
		return u.RawPath
	}
	return u.EscapedPath()
}

// Owns tells whether a path, still percent-encoded and below the base, is a page's.
func Owns(escaped string) bool {
	return escaped == "/" || escaped == "/ui" || strings.HasPrefix(escaped, "/ui/")
}
