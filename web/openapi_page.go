package web

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"pawl/web/ui"
)

// manual is the reference page, made of what the description is made of.
type manual struct {
	Base, Static, Version string
	Insecure              bool // open, with no key ever made
	Operations            []entry
	Problems              []meaning
}

// entry is one operation as people read it.
type entry struct {
	ID, Method, Path, Summary, About, Role string
	Takes                                  []term
	Gives                                  []outcome
}

// term is a parameter or a member of a body: where it goes, and what it may be.
type term struct{ Where, Name, Rule string }

// outcome is one way in which an operation ends.
type outcome struct {
	Status   int
	Bad      bool
	What     string
	Members  []term    // of a success
	Problems []meaning // of a refusal
}

// meaning is a problem and the page that explains it.
type meaning struct {
	Status            int
	Slug, Title, Text string
}

//go:embed templates
var files embed.FS

// pages are parsed when the first is asked for: nothing happens on import.
var pages = sync.OnceValue(func() *template.Template { return template.Must(template.ParseFS(files, "templates/*.html")) })

// reference answers the page. It has no script, so its policy lets none run.
func reference(w http.ResponseWriter, r *http.Request, cfg Config, g *gate) {
	var b bytes.Buffer
	if err := pages().ExecuteTemplate(&b, "docs", newManual(cfg, cfg.Insecure && g.keysInUse(r.Context()).None)); err != nil {
		cfg.Logger.ErrorContext(r.Context(), "web: docs", "error", err)
		problem(w, r, cfg.BasePath, unavailable, "The page could not be made; the log says why. /openapi.json says the same.")
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; "+
		"form-action 'none'; frame-ancestors 'none'; base-uri 'none'")
	_, _ = w.Write(b.Bytes()) // the reader may have gone
}

func newManual(cfg Config, insecure bool) manual {
	m := manual{Base: cfg.BasePath, Static: cfg.BasePath + ui.StaticPath(), Version: cfg.Version, Insecure: insecure}
	parts := readParts()
	for _, op := range operations() {
		m.Operations = append(m.Operations, parts.entry(op))
	}
	for _, k := range kinds() {
		m.Problems = append(m.Problems, meaningOf(k))
	}
	return m
}

func meaningOf(k kind) meaning {
	return meaning{Status: k.status, Slug: k.slug, Title: k.title, Text: k.explained}
}

// parts are the components that the page needs.
type parts struct {
	Parameters map[string]struct {
		Name, In, Description string
	}
	Headers map[string]struct{ Description string }
	Schemas map[string]schema
}

type schema struct {
	Ref         string `json:"$ref"`
	Description string
	Required    []string // all members of our schemas that are there for certain, in the order of reading
	Properties  map[string]schema
	OneOf       []schema
}

func readParts() parts {
	var p parts
	_ = json.Unmarshal(components, &p) // embedded: a test reads it
	return p
}

func (p parts) entry(op operation) entry {
	e := entry{
		ID: op.id, Method: op.route.Method, Path: op.route.Pattern, Summary: op.summary, About: op.about, Role: op.route.Role,
	}
	for _, name := range op.params {
		param := p.Parameters[name]
		e.Takes = append(e.Takes, term{param.In, param.Name, param.Description})
	}
	e.Takes = append(e.Takes, p.members("body", p.Schemas[op.body])...)
	for _, status := range op.route.Statuses {
		e.Gives = append(e.Gives, p.outcome(op, status))
	}
	return e
}

func (p parts) outcome(op operation, status int) outcome {
	o := outcome{Status: status, Bad: !succeeds(status), What: http.StatusText(status)}
	if o.Bad {
		for _, k := range op.problems(status) {
			o.Problems = append(o.Problems, meaningOf(k))
		}
		return o
	}
	for _, name := range op.headers {
		o.Members = append(o.Members, term{"header", name, p.Headers[name].Description})
	}
	o.Members = append(o.Members, p.members("body", p.Schemas[op.answer])...)
	return o
}

// members lists what an object has, and of its parts what they have: lock.owner.
func (p parts) members(where string, s schema) []term {
	var all []term
	for _, either := range s.OneOf {
		all = append(all, p.members(where, p.Schemas[either.name()])...)
	}
	for _, name := range s.Required {
		member := s.Properties[name]
		t := term{where, name, p.says(member)}
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
		for _, inner := range p.members(where, p.Schemas[member.name()]) {
			all = append(all, term{where, name + "." + inner.Name, inner.Rule})
		}
	}
	return all
}

// says is a member's own description, or else that of its schema.
func (p parts) says(s schema) string {
	if s.Description == "" {
		return p.Schemas[s.name()].Description
	}
	return s.Description
}

func (s schema) name() string { return strings.TrimPrefix(s.Ref, "#/components/schemas/") }

// Anchor is where the page has an operation.
func (e entry) Anchor() string { return "o-" + e.ID }

// Code is the outcome's status as it is written.
func (o outcome) Code() string { return strconv.Itoa(o.Status) }
