package ui

import (
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"pawl/lockrepo/keys"
)

// UI serves the pages: / and everything below /ui/.
type UI struct {
	cfg    Config
	routes []Route
	shared *shared
	cross  *http.CrossOriginProtection
}

// New returns the pages.
func New(cfg Config) *UI {
	cfg = cfg.withDefaults()
	cross := cfg.Cross
	if cross == nil {
		cross = http.NewCrossOriginProtection()
	}
	return &UI{cfg: cfg, routes: Routes(), shared: newShared(), cross: cross}
}

// request is one request on its way to its page.
type request struct {
	w    http.ResponseWriter
	r    *http.Request
	args map[string]string // the names in the path
	user User
}

// ServeHTTP finds the route, lets in who may, and shows what went wrong as a page.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{w: w, r: r}
	defer u.broken(q)                           //nolint:contextcheck // the request has it
	w.Header().Set("Cache-Control", "no-store") // a page from the browser's own store would count its ages from then
	if err := u.dispatch(q); err != nil {
		u.fail(r.Context(), q, err)
	}
}

// broken answers where a page panics: the server would close the connection without a word.
func (u *UI) broken(q *request) {
	what := recover()
	if what == nil {
		return
	}
	if what == http.ErrAbortHandler { //nolint:errorlint,err113 // it is that value that ends an answer
		panic(what)
	}
	u.cfg.Logger.ErrorContext(q.r.Context(), "ui: panic", "path", q.r.URL.Path, "panic", what, "stack", string(debug.Stack()))
	u.show(q.r.Context(), q, http.StatusInternalServerError, view{Name: "refusal", Title: "Broken", Data: &RefusedError{
		Title: "Broken", Detail: "The page could not be made, and that is a fault of pawl’s; the log says more.",
	}})
}

func (u *UI) dispatch(q *request) error {
	path := EscapedPath(q.r.URL)
	route, args, allow := u.find(q.r.Method, path)
	switch {
	case route.serve == nil && len(allow) == 0:
		q.user, _ = u.cfg.Who(q.r) // who is known keeps the way back
		return notFound("No page is at this address. If somebody typed it: names in it are percent-encoded, and it does not end in a slash.")
	case route.serve == nil:
		q.w.Header().Set("Allow", strings.Join(allow, ", "))
		return &RefusedError{Status: http.StatusMethodNotAllowed, Title: "Not that way", Detail: "Use one of " + strings.Join(allow, ", ") + " here."}
	}
	q.args = args
	if err := u.admit(q, route); err != nil {
		return err
	}
	return route.serve(u, q)
}

// admit refuses before anything is read or done.
func (u *UI) admit(q *request, route Route) (err error) {
	if err := u.cross.Check(q.r); err != nil {
		return &RefusedError{
			Status: http.StatusForbidden, Title: "From another site",
			Detail: "This form was sent from " + origin(q.r) + ", and this page is at " + q.r.Host + ". If a proxy in front changes the name, start pawl serve with --trusted-origin.",
		}
	}
	q.user, err = u.cfg.Who(q.r)
	if route.Role == "" {
		return nil
	}
	switch {
	case err != nil:
		return err
	case !q.user.may(route.Role):
		return &RefusedError{
			Status: http.StatusForbidden, Title: "Not yours to do",
			Detail: "You are a " + q.user.Role + ", and this needs an " + route.Role + ": ask somebody who is one, or sign in with another key.",
		}
	case route.Decides && !q.user.Approver && !q.user.may(keys.Operator):
		return &RefusedError{Status: http.StatusForbidden, Title: "Not yours to decide", Detail: "You are a " + q.user.Role + " who may not approve: ask somebody whose key was made with that right."}
	case route.Acts && u.cfg.ReadOnly:
		return &RefusedError{Status: http.StatusForbidden, Title: "Read only", Detail: "This page was started read only: nothing can be changed here."}
	}
	return nil
}

func origin(r *http.Request) string {
	if o := r.Header.Get("Origin"); o != "" && o != "null" {
		return o
	}
	return "another site"
}

const maxForm = 64 << 10

// form reads what was sent with a POST.
func (q *request) form() error {
	q.r.Body = http.MaxBytesReader(q.w, q.r.Body, maxForm)
	_ = http.NewResponseController(q.w).SetReadDeadline(time.Now().Add(readTimeout)) // not every server can
	if err := q.r.ParseForm(); err != nil {
		return &RefusedError{Status: http.StatusBadRequest, Title: "Not understood", Detail: "The form didn't arrive whole, or has more than 64 KiB: send it again."}
	}
	return nil
}

const readTimeout = 5 * time.Second

// to answers a POST: the browser loads a fresh page, whose reload repeats nothing.
func (u *UI) to(q *request, path string) error {
	http.Redirect(q.w, q.r, u.cfg.BasePath+path, http.StatusSeeOther)
	return nil
}
