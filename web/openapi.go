package web

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// components are the parts that the description's operations refer to.
//
//go:embed openapi.json
var components []byte

// describe serves the lock API's description, for machines and for people. Without the API there is nothing to say.
func describe(mux *http.ServeMux, cfg Config, g *gate) {
	if cfg.API == nil {
		return
	}
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-cache")
		writeJSON(w, description(cfg))
	})
	mux.HandleFunc("GET /docs", func(w http.ResponseWriter, r *http.Request) { reference(w, r, cfg, g) })
}

type object = map[string]any

// description is the OpenAPI 3.1 document. Its paths, methods, roles and statuses are those of the table of routes.
func description(cfg Config) object {
	paths := map[string]object{}
	for _, op := range operations() {
		path := paths[op.route.Pattern]
		if path == nil {
			path = object{}
			paths[op.route.Pattern] = path
		}
		path[strings.ToLower(op.route.Method)] = op.describe()
	}
	base := cfg.BasePath
	if base == "" {
		base = "/"
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "pawl's lock API", "version": cfg.Version,
			"description": "Locks with leases and fencing tokens, kept in Postgres. HEAD works where GET does, OPTIONS answers with Allow; " +
				"any other method of a path is 405 with Allow. No redirect is ever sent.",
		},
		"servers":    []object{{"url": base}},
		"paths":      paths,
		"components": json.RawMessage(components),
	}
}

func (o operation) describe() object {
	d := object{"operationId": o.id, "summary": o.summary, "description": o.whole(), "responses": o.responses()}
	if o.route.Role == "" {
		d["security"] = []object{}
	} else {
		d["security"] = []object{{"key": []string{}}}
	}
	if len(o.params) > 0 {
		params := make([]object, 0, len(o.params))
		for _, name := range o.params {
			params = append(params, ref("parameters", name))
		}
		d["parameters"] = params
	}
	if o.body != "" {
		d["requestBody"] = object{"required": !o.bare, "content": content("application/json", ref("schemas", o.body))}
	}
	return d
}

// whole is the description with the role that it needs.
func (o operation) whole() string {
	if o.route.Role == "" {
		return o.about + " Open to all."
	}
	return o.about + " Needs the role " + o.route.Role + " or a higher one."
}

func (o operation) responses() object {
	all := object{}
	for _, status := range o.route.Statuses {
		if succeeds(status) || o.media == "text/plain" && status == http.StatusNotFound {
			all[strconv.Itoa(status)] = o.success(status)
		} else {
			all[strconv.Itoa(status)] = o.refusal(status)
		}
	}
	return all
}

func (o operation) success(status int) object {
	r := object{"description": http.StatusText(status), "headers": headers(append([]string{"X-Request-Id"}, o.headers...))}
	switch {
	case status == http.StatusNotModified: // without a body
	case o.answer != "":
		r["content"] = content("application/json", ref("schemas", o.answer))
	case o.media != "":
		r["content"] = content(o.media, object{"type": "string"})
	}
	return r
}

func (o operation) refusal(status int) object {
	names := []string{"X-Request-Id"}
	var titles []string
	for _, k := range o.problems(status) {
		titles = append(titles, k.title+" ("+k.slug+").")
		if k.retry > 0 {
			names = append(names, "Retry-After")
		}
	}
	return object{
		"description": strings.Join(titles, " "), "headers": headers(names),
		"content": content("application/problem+json", ref("schemas", "Problem")),
	}
}

func ref(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

func content(media string, schema object) object { return object{media: object{"schema": schema}} }

func headers(names []string) object {
	all := object{}
	for _, name := range names {
		all[strings.TrimPrefix(name, "File-")] = ref("headers", name)
	}
	return all
}
