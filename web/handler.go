package web

import (
	"net/http"
	"path"
	"strings"

	"pawl/web/ui"
)

// Handler serves the pages, the first one's facts as JSON, the lock API if Config.API is there, and what [HealthHandler] serves, all below
// Config.BasePath.
func Handler(cfg Config) http.Handler {
	cfg = cfg.withDefaults()
	if cfg.Insecure {
		warnOpen(cfg)
	}
	mux := http.NewServeMux()
	health(mux, cfg)
	g := newGate(cfg)
	describe(mux, cfg, g)
	o := &overview{cfg: cfg, snapshots: newSnapshots(cfg.Locks, cfg.Jobs, cfg.Logger)}
	mux.HandleFunc("GET /api/overview", g.guarded(cfg.BasePath, roleOf(http.MethodGet, "/api/overview"), o.json, o.jsonAway))
	return framed(cfg.BasePath, mounted(cfg.BasePath, mux, newAPI(cfg, g), newPages(cfg, g)))
}

func warnOpen(cfg Config) {
	if cfg.Keys == nil {
		cfg.Logger.Warn("web: no sign-in: whoever reaches this address may read everything, and hold and release every lock")
		return
	}
	cfg.Logger.Warn("web: no sign-in until a key is made: whoever reaches this address may read everything, and hold and release every lock")
}

// HealthHandler serves /healthz, /readyz and /metrics only, for an address that the page isn't shown on.
func HealthHandler(cfg Config) http.Handler {
	cfg = cfg.withDefaults()
	cfg.API, cfg.Artifacts = nil, nil
	mux := http.NewServeMux()
	health(mux, cfg)
	return framed(cfg.BasePath, mounted(cfg.BasePath, mux, newAPI(cfg, newGate(cfg)), nil))
}

// framed is what holds for every request and every answer.
func framed(base string, next http.Handler) http.Handler {
	return identified(secured(bounded(base, next)))
}

// secured sets the headers that every answer carries. Nothing but our own files is loaded, nothing inline runs, and
// no other site may frame the page or read it.
func secured(next http.Handler) http.Handler {
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; " +
		"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
		next.ServeHTTP(w, r)
	})
}

// mounted serves mux and the lock API below base. What the mux would refuse or redirect by itself becomes a problem
// document: no path is ever redirected to another spelling of it.
func mounted(base string, mux *http.ServeMux, locks *api, pages *ui.UI) http.Handler {
	mux.HandleFunc("GET /problems/{slug}", explain)
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if locks.owns(ui.EscapedPath(r.URL)) {
			locks.ServeHTTP(w, r)
			return
		}
		if pages != nil && ui.Owns(ui.EscapedPath(r.URL)) {
			pages.ServeHTTP(w, r)
			return
		}
		if r.URL.Path != path.Clean("/"+r.URL.Path) {
			problem(w, r, base, notFound, "Nothing is here. The page is at "+base+"/.")
			return
		}
		refuse, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		verdict := &verdict{header: http.Header{}, status: http.StatusOK}
		refuse.ServeHTTP(verdict, r)
		verdict.answer(w, r, base)
	})
	if base == "" {
		return inner
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if below, ok := strip(r, base); ok {
			inner.ServeHTTP(w, below)
			return
		}
		problem(w, r, base, notFound, "Nothing is here. Everything is below "+base+"/.")
	})
}

// strip takes base from the path, which may leave out the slash at its end, as people do.
func strip(r *http.Request, base string) (*http.Request, bool) {
	u := *r.URL
	if u.Path == base && u.RawPath == "" {
		u.Path = base + "/"
	}
	var below, rawBelow bool
	u.Path, below = strings.CutPrefix(u.Path, base)
	u.RawPath, rawBelow = strings.CutPrefix(u.RawPath, base)
	if !below || !strings.HasPrefix(u.Path, "/") || r.URL.RawPath != "" && !rawBelow {
		return nil, false
	}
	shallow := *r
	shallow.URL = &u
	return &shallow, true
}

// verdict keeps what the mux would have answered and drops the text.
type verdict struct {
	header http.Header
	status int
}

func (v *verdict) Header() http.Header         { return v.header }
func (v *verdict) WriteHeader(status int)      { v.status = status }
func (v *verdict) Write(b []byte) (int, error) { return len(b), nil }

func (v *verdict) answer(w http.ResponseWriter, r *http.Request, base string) {
	if v.status == http.StatusMethodNotAllowed {
		refuseMethod(w, r, base, v.header.Get("Allow"))
		return
	}
	problem(w, r, base, notFound, "Nothing is here. The page is at "+base+"/.")
}
