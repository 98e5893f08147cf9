package web

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"
)

// kind is a sort of problem: its slug names the page that explains it.
type kind struct {
	slug, title string
	status      int
	retry       time.Duration // zero: asking again doesn't help by itself
	explained   string
}

var (
	notFound = kind{
		slug: "not-found", title: "Not found", status: http.StatusNotFound,
		explained: "Nothing has this address. Check its spelling, a slash at the end, and the base path.",
	}
	methodNotAllowed = kind{
		slug: "method-not-allowed", title: "Method not allowed", status: http.StatusMethodNotAllowed,
		explained: "The address exists, but not for this method. The Allow header names those that it has.",
	}
	unavailable = kind{
		slug: "unavailable", title: "Unavailable", status: http.StatusServiceUnavailable, retry: 2 * time.Second,
		explained: "The answer can't be given now: the database is away or slow, or this process takes no work. Ask again.",
	}
)

// problem answers with a problem document (RFC 9457). Detail is one sentence that says what to do; it holds no SQL,
// no host and no path of this machine.
func problem(w http.ResponseWriter, r *http.Request, base string, k kind, detail string) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if k.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(k.retry.Seconds())))
	}
	w.WriteHeader(k.status)
	writeJSON(w, map[string]any{
		"type": base + "/problems/" + k.slug, "title": k.title, "status": k.status, "detail": detail,
		"instance": r.URL.EscapedPath(),
	})
}

// explain serves the page that a problem's type leads to.
func explain(w http.ResponseWriter, r *http.Request) {
	k := notFound
	for _, other := range []kind{methodNotAllowed, unavailable} {
		if other.slug == r.PathValue("slug") {
			k = other
		}
	}
	if k.slug != r.PathValue("slug") {
		w.WriteHeader(http.StatusNotFound)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, k.title+"\n\n"+k.explained+"\n") // the reader may have gone
}

// writeJSON ends an answer whose status has been sent: there is nobody left to tell of an error.
func writeJSON(w io.Writer, v any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}
