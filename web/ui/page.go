package ui

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// templates are parsed when the first page is asked for: nothing happens on import.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(allFunctions()).ParseFS(files, "templates/*.html"))
})

// view is what a handler shows: the template of that name, with its data. Data holds no ages: they are made of times when
// the page is written, so that the same data is the same page.
type view struct {
	Name  string // the template
	Title string
	Nav   string // the entry of the bar that is current
	Live  bool   // the page renews itself
	Now   time.Time
	Data  any
}

// page is what a template sees.
type page struct {
	view
	Self     string // the page's own address, with its filters
	Base     string
	Static   string
	Database string
	Version  string
	Notice   string
	Theme    string // light, dark, or empty: as the machine has it
	Zone     *time.Location
	User     User
	Acts     bool // the user may act here
	SignIn   bool // people sign in with a key
	Keys     bool // the user may see the keys
	API      bool // the lock API is described at /docs

	Downloads bool   // artifacts can be downloaded here
	Waiting   string // how many requests the user may decide; empty: none
}

func (u *UI) page(q *request, v view) *page {
	if v.Now.IsZero() {
		v.Now = time.Now()
	}
	return &page{
		view: v, Self: u.cfg.BasePath + q.r.URL.RequestURI(), Base: u.cfg.BasePath, Static: u.cfg.BasePath + StaticPath(), Database: u.cfg.Database,
		Version: u.cfg.Version, Notice: u.cfg.Notice(q.r.Context()), Theme: themeOf(q.r), Zone: zoneOf(q.r), User: q.user,
		Acts: q.user.may("operator") && !u.cfg.ReadOnly, SignIn: u.cfg.SignIn != nil, Keys: q.user.may("operator") && u.cfg.Keys != nil, API: u.cfg.API,
		Downloads: u.cfg.Artifacts != nil, Waiting: u.waiting(q),
	}
}

// URL is an address below the base, of segments that are percent-encoded here.
func (p *page) URL(segments ...string) string {
	var b strings.Builder
	b.WriteString(p.Base)
	for i, s := range segments {
		if i == 2 && len(segments) == 3 && segments[1] == "jobs" && (s == "pause" || s == "resume") {
			b.WriteString("/" + fmt.Sprintf("%%%02X", s[0]) + s[1:]) // a job of that name, not the act on many
			continue
		}
		b.WriteString("/" + segment(s))
	}
	return b.String()
}

// segment encodes a name so that it stays one segment of a path; a browser would resolve dots.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// With is the page's own address with one part of the query changed; an empty value takes it out. Paging starts again.
func (p *page) With(name, value string) string {
	at, query, _ := strings.Cut(p.Self, "?")
	values, _ := url.ParseQuery(query)
	values.Del("before")
	values.Del("after")
	if value == "" {
		values.Del(name)
	} else {
		values.Set(name, value)
	}
	if len(values) == 0 {
		return at
	}
	return at + "?" + values.Encode()
}

// Of tells that this is the page of one job, whose name need not stand in each row.
func (p *page) Of(job string) bool { return p.Name == "job" && p.Title == job }

// Query is the page's own query, with its question mark; empty: there is none.
func (p *page) Query() string {
	if _, query, ok := strings.Cut(p.Self, "?"); ok {
		return "?" + query
	}
	return ""
}

// Next is the page's own address, further down the list.
func (p *page) Next(name, value string) string {
	at, query, _ := strings.Cut(p.Self, "?")
	values, _ := url.ParseQuery(query)
	values.Set(name, value)
	return at + "?" + values.Encode()
}

// render answers a GET with a page, or says that it is the same as before.
func (u *UI) render(q *request, v view) error {
	v.Live = true
	p := u.page(q, v)
	tag, err := tagOf(*p)
	if err != nil {
		return err
	}
	q.w.Header().Set("ETag", tag)
	if matches(q.r, tag) {
		q.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return u.write(q, http.StatusOK, p)
}

// show answers with a page that isn't renewed: a form, or what went wrong.
func (u *UI) show(ctx context.Context, q *request, status int, v view) {
	if err := u.write(q, status, u.page(q, v)); err != nil { //nolint:contextcheck // the request has it
		u.cfg.Logger.ErrorContext(ctx, "ui: page", "error", err)
		http.Error(q.w, "The page could not be made; the log says why.", http.StatusServiceUnavailable)
	}
}

func (u *UI) write(q *request, status int, p *page) error {
	var b bytes.Buffer
	if err := templates().ExecuteTemplate(&b, p.Name, p); err != nil {
		return err
	}
	q.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	q.w.WriteHeader(status)
	_, _ = q.w.Write(b.Bytes()) // the reader may have gone
	return nil
}

// tagOf is the same for pages that say the same, ages aside: it is made of the page as if it were no time. It is weak for
// their sake.
func tagOf(p page) (string, error) {
	p.Now = time.Time{}
	sum := sha256.New()
	err := templates().ExecuteTemplate(sum, p.Name, &p)
	return `W/"` + hex.EncodeToString(sum.Sum(nil)[:8]) + `"`, err
}

func matches(r *http.Request, tag string) bool {
	for t := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if t = strings.TrimSpace(t); t == tag || "W/"+t == tag || t == "*" {
			return true
		}
	}
	return false
}
