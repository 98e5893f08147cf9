package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"

	"pawl/jobs"
	"pawl/lockrepo"
)

// overview serves what is true now, for people and for machines.
type overview struct {
	cfg       Config
	gate      *gate
	snapshots *snapshots
}

// pages are parsed when the first is asked for: nothing happens on import.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(functions()).ParseFS(files, "templates/*.html"))
})

// page answers 503 when nothing could be read, with the page all the same: it says what is wrong.
func (o *overview) page(w http.ResponseWriter, r *http.Request) {
	o.show(w, r, o.snapshots.get(r.Context()), o.gate.signIn(r.Context()))
}

// pageAway is the page without a figure: whether it needs a key couldn't be asked either.
func (o *overview) pageAway(w http.ResponseWriter, r *http.Request, err error) {
	o.cfg.Logger.WarnContext(r.Context(), "web: keys can't be checked", "error", err)
	o.show(w, r, unanswered(err), signIn{})
}

func (o *overview) show(w http.ResponseWriter, r *http.Request, n *snapshot, who signIn) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	if !n.away() {
		h.Set("ETag", o.etag(n, who))
		if matches(r, o.etag(n, who)) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	var b bytes.Buffer
	if err := pages().ExecuteTemplate(&b, "overview", newView(n, o.cfg, who)); err != nil {
		o.cfg.Logger.ErrorContext(r.Context(), "web: page", "error", err)
		problem(w, r, o.cfg.BasePath, unavailable, "The page could not be made; the log says why. /api/overview has the same facts.")
		return
	}
	if n.away() {
		h.Set("Retry-After", "2")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(b.Bytes()) // the reader may have gone
}

// etag is weak: what the page says is the same, while the ages in it aren't.
func (o *overview) etag(n *snapshot, who signIn) string {
	sum := sha256.Sum256(fmt.Append(nil, o.cfg.Version, staticHash(), n.Tag, who, strings.Join(o.cfg.Wrong(), "\n")))
	return `W/"` + hex.EncodeToString(sum[:8]) + `"`
}

func matches(r *http.Request, tag string) bool {
	for t := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if t = strings.TrimSpace(t); t == tag || "W/"+t == tag || t == "*" {
			return true
		}
	}
	return false
}

// answer is the page as JSON, at most a hundred of each.
type answer struct {
	Now         time.Time          `json:"now"`
	Holders     []lockrepo.Info    `json:"holders"`
	StaleClaims []lockrepo.Tenure  `json:"stale_claims"`
	Refusals    []lockrepo.Refusal `json:"refusals"`
	LetThrough  []lockrepo.Refusal `json:"let_through"` // by tables that are protected in log mode
	Runs        []jobs.RunRecord   `json:"runs"`
	Counts      jobs.Counts        `json:"counts"`
}

// json answers all or nothing: a list that is empty because nobody answered would be a lie.
func (o *overview) json(w http.ResponseWriter, r *http.Request) {
	n := o.snapshots.get(r.Context())
	for _, err := range n.errs() {
		if err != nil {
			o.jsonAway(w, r, err)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, answer{
		Now: n.Now, Holders: n.Holders.Rows, StaleClaims: n.Stale.Rows, Refusals: n.Refusals.Rows, LetThrough: n.Passed.Rows,
		Runs: n.Runs.Rows, Counts: n.Counts.Rows[0],
	})
}

func (o *overview) jsonAway(w http.ResponseWriter, r *http.Request, err error) {
	problem(w, r, o.cfg.BasePath, unavailable, "The database "+lockrepo.Reason(err)+"; ask again.")
}
