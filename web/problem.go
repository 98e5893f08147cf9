package web

import (
	"encoding/json"
	"io"
	"maps"
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

// problemError is a refusal on its way to the client.
type problemError struct {
	kind   kind
	detail string         // one sentence: what to do
	retry  time.Duration  // zero: the kind's
	more   map[string]any // further members of the document

	challenge string // what a 401 says of the key that was sent
}

// Error is what the log says of it.
func (e *problemError) Error() string { return "web: " + e.kind.slug + ": " + e.detail }

func refuse(k kind, detail string) *problemError { return &problemError{kind: k, detail: detail} }

// invalid carries all faults of the values at once.
func invalid(faults []fault) *problemError {
	return &problemError{
		kind: validation, detail: "Some values are not allowed; errors names each of them and what it may be.",
		more: map[string]any{"errors": faults},
	}
}

// problem answers with a problem document (RFC 9457). Detail is one sentence that says what to do; it holds no SQL,
// no host and no path of this machine.
func problem(w http.ResponseWriter, r *http.Request, base string, k kind, detail string) {
	refuse(k, detail).answer(w, r, base)
}

func (e *problemError) answer(w http.ResponseWriter, r *http.Request, base string) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if retry := max(e.retry, e.kind.retry); retry > 0 {
		h.Set("Retry-After", strconv.Itoa(wholeSeconds(retry)))
	}
	if e.kind.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="pawl"`+e.challenge)
	}
	w.WriteHeader(e.kind.status)
	doc := map[string]any{
		"type": base + "/problems/" + e.kind.slug, "title": e.kind.title, "status": e.kind.status, "detail": e.detail,
		"instance": instance(r, base),
	}
	maps.Copy(doc, e.more)
	writeJSON(w, doc)
}

// wholeSeconds rounds up: who waits less comes too early.
func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// explain serves the page that a problem's type leads to.
func explain(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	k, ok := kindOf(r.PathValue("slug"))
	if !ok {
		k = notFound
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = io.WriteString(w, k.title+" ("+strconv.Itoa(k.status)+")\n\n"+k.explained+"\n") // the reader may have gone
}

func kindOf(slug string) (kind, bool) {
	for _, k := range kinds() {
		if k.slug == slug {
			return k, true
		}
	}
	return kind{}, false
}

// writeJSON ends an answer whose status has been sent: there is nobody left to tell of an error.
func writeJSON(w io.Writer, v any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}
