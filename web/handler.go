package web

import (
	"net/http"
	"path"
	"strings"
)

// Handler serves the page, its JSON, and what [HealthHandler] serves, all below Config.BasePath.
func Handler(cfg Config) http.Handler {
	cfg = cfg.withDefaults()
	if cfg.Insecure {
		cfg.Logger.Warn("web: no sign-in: whoever reaches this address can read what is held and what ran")
	}
	mux := http.NewServeMux()
	health(mux, cfg)
	o := &overview{cfg: cfg, snapshots: newSnapshots(cfg.Locks, cfg.Jobs, cfg.Logger)}
	mux.HandleFunc("GET /{$}", o.page)
	mux.HandleFunc("GET /api/overview", o.json)
	mux.HandleFunc("GET /static/{hash}/{file}", func(w http.ResponseWriter, r *http.Request) {
		serveStatic(w, r, cfg.BasePath)
	})
	return secured(mounted(cfg.BasePath, mux))
}

// HealthHandler serves /healthz, /readyz and /metrics only, for an address that the page isn't shown on.
func HealthHandler(cfg Config) http.Handler {
	cfg = cfg.withDefaults()
	mux := http.NewServeMux()
	health(mux, cfg)
	return secured(mounted(cfg.BasePath, mux))
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

// mounted serves mux below base. What the mux would refuse or redirect by itself becomes a problem document: no
// redirect is ever sent, so a path has one spelling.
func mounted(base string, mux *http.ServeMux) http.Handler {
	mux.HandleFunc("GET /problems/{slug}", explain)
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	below := http.StripPrefix(base, inner)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == base: // people leave the slash out
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = base+"/", ""
			below.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, base+"/"):
			below.ServeHTTP(w, r)
		default:
			problem(w, r, base, notFound, "Nothing is here. Everything is below "+base+"/.")
		}
	})
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
	allow := v.header.Get("Allow")
	switch {
	case v.status != http.StatusMethodNotAllowed:
		problem(w, r, base, notFound, "Nothing is here. The page is at "+base+"/.")
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", allow+", OPTIONS")
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", allow)
		problem(w, r, base, methodNotAllowed, "Use one of "+allow+" here; nothing on these pages changes anything.")
	}
}
