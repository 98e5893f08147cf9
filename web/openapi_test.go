package web

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// document is the description as a client gets it.
type document struct {
	OpenAPI string
	Servers []struct{ URL string }
	Paths   map[string]map[string]operationText
	text    string
}

type operationText struct {
	OperationID, Summary, Description string
	Parameters                        []refText
	Security                          []map[string][]string
	RequestBody                       *struct{ Content map[string]any }
	Responses                         map[string]struct {
		Description string
		Content     map[string]any
	}
}

type refText struct {
	Ref string `json:"$ref"`
}

// describedAt is what a server answers that has the API, mounted at base.
func describedAt(t *testing.T, path, base string) *httptest.ResponseRecorder {
	t.Helper()
	mux := http.NewServeMux()
	describe(mux, Config{API: struct{ API }{}, BasePath: base, Version: "v0"}.withDefaults(), newGate(Config{}))
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	return w
}

func descriptionOf(t *testing.T, base string) document {
	t.Helper()
	w := describedAt(t, "/openapi.json", base)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s", w.Code, w.Header().Get("Content-Type"))
	}
	d := document{text: w.Body.String()}
	if err := json.Unmarshal([]byte(d.text), &d); err != nil || d.OpenAPI != "3.1.0" {
		t.Fatal(d.OpenAPI, err)
	}
	return d
}

// eachRoute calls f for each row of the table with the operation that describes it.
func eachRoute(t *testing.T, d document, f func(r apiRoute, op operationText)) {
	t.Helper()
	for _, r := range apiRoutes() {
		op, ok := d.Paths[r.Pattern][strings.ToLower(r.Method)]
		if !ok {
			t.Errorf("%s %s isn't described", r.Method, r.Pattern)
			continue
		}
		f(r, op)
	}
}

func TestDescriptionHasTheRoutesAndStatusesOfTheTable(t *testing.T) {
	t.Parallel()
	d := descriptionOf(t, "")
	ids := map[string]bool{}
	eachRoute(t, d, func(r apiRoute, op operationText) {
		name := r.Method + " " + r.Pattern
		if op.OperationID == "" || op.Summary == "" || len(op.Description) < 20 || ids[op.OperationID] {
			t.Errorf("%s: operation %q, %q, %q", name, op.OperationID, op.Summary, op.Description)
		}
		ids[op.OperationID] = true
		var want, got []string
		for _, status := range r.Statuses {
			want = append(want, strconv.Itoa(status))
		}
		for status := range op.Responses {
			got = append(got, status)
		}
		if slices.Sort(want); !slices.Equal(want, slices.Sorted(slices.Values(got))) {
			t.Errorf("%s: described %v, in the table %v", name, got, want)
		}
		if open := len(op.Security) == 0; open != (r.Role == "") || !open && !strings.Contains(op.Description, r.Role) {
			t.Errorf("%s for %q: %v, %q", name, r.Role, op.Security, op.Description)
		}
	})
	count := 0
	for _, path := range d.Paths {
		count += len(path)
	}
	if count != len(apiRoutes()) || len(described()) != len(apiRoutes()) {
		t.Errorf("%d operations, %d of them with words, of %d routes", count, len(described()), len(apiRoutes()))
	}
}

func TestEveryRefusalIsAProblemThatIsNamed(t *testing.T) {
	t.Parallel()
	named := map[string]bool{methodNotAllowed.slug: true} // of what is no route
	eachRoute(t, descriptionOf(t, ""), func(r apiRoute, op operationText) {
		for status, answer := range op.Responses {
			n, err := strconv.Atoi(status)
			if err != nil || answer.Description == "" {
				t.Errorf("%s %s: %s %q", r.Method, r.Pattern, status, answer.Description)
			}
			for _, k := range kinds() {
				if k.status == n && strings.Contains(answer.Description, "("+k.slug+")") {
					named[k.slug] = true
				}
			}
			plain := n < 400 || r.Pattern == "/problems/{slug}" && n == http.StatusNotFound
			if _, isProblem := answer.Content["application/problem+json"]; isProblem == plain {
				t.Errorf("%s %s: %s answers %v", r.Method, r.Pattern, status, answer.Content)
			}
		}
	})
	for _, k := range kinds() {
		if !named[k.slug] {
			t.Errorf("no route answers %s", k.slug)
		}
	}
}

func TestEveryReferenceOfTheDescriptionLeadsToAComponent(t *testing.T) {
	t.Parallel()
	d := descriptionOf(t, "")
	var all struct {
		Components map[string]map[string]any
	}
	if err := json.Unmarshal([]byte(d.text), &all); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{"securitySchemes/key": true}
	for _, m := range regexp.MustCompile(`"\$ref":"#/components/([^"]+)"`).FindAllStringSubmatch(strings.ReplaceAll(d.text, `": "`, `":"`), -1) {
		kind, name, _ := strings.Cut(m[1], "/")
		if used[m[1]] = true; all.Components[kind][name] == nil {
			t.Errorf("%s is not there", m[1])
		}
	}
	for kind, parts := range all.Components {
		for name := range parts {
			if !used[kind+"/"+name] {
				t.Errorf("%s/%s is not used", kind, name)
			}
		}
	}
}

func TestParametersInThePathAreThePatterns(t *testing.T) {
	t.Parallel()
	known := readParts().Parameters
	eachRoute(t, descriptionOf(t, ""), func(r apiRoute, op operationText) {
		var got, want []string
		for _, p := range op.Parameters {
			name := strings.TrimPrefix(p.Ref, "#/components/parameters/")
			if known[name].Name != name {
				t.Errorf("%s is called %q", name, known[name].Name)
			}
			if known[name].In == "path" {
				got = append(got, "{"+name+"}")
			}
		}
		want = regexp.MustCompile(`\{[a-z]+\}`).FindAllString(r.Pattern, -1)
		if !slices.Equal(got, want) {
			t.Errorf("%s: described %v", r.Pattern, got)
		}
		if reads := r.Method != http.MethodGet; (op.RequestBody != nil) != reads {
			t.Errorf("%s %s: described body %v", r.Method, r.Pattern, op.RequestBody)
		}
	})
}

// members are the names that v has as JSON.
func members(v any) []string {
	var names []string
	of := reflect.TypeOf(v)
	for i := range of.NumField() {
		field := of.Field(i)
		if field.Anonymous {
			names = append(names, members(reflect.New(field.Type).Elem().Interface())...)
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func TestSchemasAreWhatIsAnswered(t *testing.T) {
	t.Parallel()
	schemas := readParts().Schemas
	for name, v := range map[string]any{
		"Lock": lock{}, "Granted": granted{}, "NotGranted": notGranted{}, "One": one{}, "ListedLock": listed{}, "Locks": locks{},
		"Tenure": tenure{}, "Tenures": tenures{}, "Checked": checked{}, "Overview": answer{}, "Fault": fault{},
	} {
		s := schemas[name]
		if want := members(v); !slices.Equal(s.Required, want) || len(s.Properties) != len(want) {
			t.Errorf("%s: described %v, answered %v", name, s.Required, want)
		}
	}
	for name, parse := range map[string]func([]byte) ([]fault, error){
		"Acquire": func(b []byte) ([]fault, error) { _, f, err := parseAcquire(b); return f, err },
		"Release": func(b []byte) ([]fault, error) { _, f, err := parseOwner(b); return f, err },
		"Check":   func(b []byte) ([]fault, error) { _, _, f, err := parseFence(b); return f, err },
	} {
		faults, err := parse([]byte("{}"))
		if want := "/" + strings.Join(schemas[name].Required, " /"); pointers(faults, err) != want || len(schemas[name].Properties) != len(faults) {
			t.Errorf("%s: described %s, asked for %v", name, want, faults)
		}
	}
}

func TestReferencePageHasEveryRouteAndEveryProblem(t *testing.T) {
	t.Parallel()
	w := describedAt(t, "/docs", "/base")
	page := w.Body.String()
	for _, op := range operations() {
		section := `<section id="o-` + op.id + `"`
		_, rest, ok := strings.Cut(page, section)
		if !ok {
			t.Errorf("%s has no section", op.id)
			continue
		}
		section, _, _ = strings.Cut(rest, "</section>")
		texts := []string{op.route.Method + " /base" + op.route.Pattern + "</code>", op.summary}
		for _, status := range op.route.Statuses {
			texts = append(texts, "<code>"+strconv.Itoa(status)+"</code>")
		}
		for _, name := range slices.Concat(op.params, readParts().Schemas[op.body].Required) {
			texts = append(texts, "<code>"+name+"</code>")
		}
		for _, text := range texts {
			if !strings.Contains(section, html.EscapeString(text)) && !strings.Contains(section, text) {
				t.Errorf("the section of %s lacks %s", op.id, text)
			}
		}
	}
	for _, k := range kinds() {
		if !strings.Contains(page, `id="p-`+k.slug+`"`) || !strings.Contains(page, `href="/base/problems/`+k.slug+`"`) {
			t.Errorf("%s is not explained", k.slug)
		}
	}
	for _, empty := range []string{"<td role=\"cell\" data-l=\"Rule\" class=\"write\"></td>", "<td role=\"cell\" data-l=\"Meaning\" class=\"write\"></td>", "ZgotmplZ"} {
		if strings.Contains(page, empty) {
			t.Errorf("the page has %s", empty)
		}
	}
}

func TestReferencePageRunsNoScriptAndKeepsToTheBasePath(t *testing.T) {
	t.Parallel()
	w := describedAt(t, "/docs", "/base")
	page, policy := w.Body.String(), w.Header().Get("Content-Security-Policy")
	if w.Code != http.StatusOK || strings.Contains(page, "<script") || strings.Contains(policy, "script-src") ||
		!strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") {
		t.Errorf("%d under %q, with a script: %t", w.Code, policy, strings.Contains(page, "<script"))
	}
	for _, m := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if anchor, ok := strings.CutPrefix(m[1], "#"); ok && !strings.Contains(page, ` id="`+anchor+`"`) || !ok && !strings.HasPrefix(m[1], "/base/") {
			t.Errorf("%q leads nowhere", m[1])
		}
	}
	if d := descriptionOf(t, "/base"); len(d.Servers) != 1 || d.Servers[0].URL != "/base" {
		t.Errorf("servers = %v", d.Servers)
	}
}

func TestWithoutTheAPINothingIsDescribed(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	describe(mux, Config{}.withDefaults(), newGate(Config{}))
	for _, path := range []string{"/openapi.json", "/docs"} {
		if _, pattern := mux.Handler(httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)); pattern != "" {
			t.Errorf("%s is served", path)
		}
	}
}
