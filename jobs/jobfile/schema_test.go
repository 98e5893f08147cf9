package jobfile

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
)

// validator returns the schema, ready to judge files.
func validator(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// decoded returns a YAML file as an editor gives it to a validator.
func decoded(t *testing.T, source []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(source, &v); err != nil {
		t.Fatalf("%v in\n%s", err, source)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func rightFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{"init.yaml": Init()}
	paths, err := filepath.Glob("testdata/ok/*.yaml")
	if err != nil || len(paths) < 2 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		if files[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestTheSchemaTakesRightFiles(t *testing.T) {
	t.Parallel()
	r := validator(t)
	for path, source := range rightFiles(t) {
		if err := r.Validate(decoded(t, source)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestTheSchemaRefusesWrongShapes: what an editor can see without knowing pawl.
func TestTheSchemaRefusesWrongShapes(t *testing.T) {
	t.Parallel()
	r := validator(t)
	for _, name := range []string{
		"no-version", "version-2", "no-jobs", "jobs-map", "job-is-text", "unknown-top", "app-name", "defaults", "databases",
		"names", "kind-unknown", "kind-no-block", "kind-two-blocks", "block-is-text", "schedule-missing", "schedule-number",
		"period-unknown", "period-offset-range", "dst", "catch-up", "due-by-form", "no-unit", "on-dead", "wrong-shapes",
		"sql-words", "argv-missing", "command", "output-size", "http", "http-url-missing", "params", "contract", "shards", "reduce",
	} {
		source, err := os.ReadFile("testdata/lint/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if r.Validate(decoded(t, source)) == nil {
			t.Errorf("%s.yaml is taken", name)
		}
	}
}

// TestTheSchemaAndParseAgree puts wrong values in every place of a complete file. What
// the schema refuses Parse must refuse too, or an editor would mark what pawl takes; and
// unknown keys, lists and maps in the wrong place both must see.
func TestTheSchemaAndParseAgree(t *testing.T) {
	t.Parallel()
	r := validator(t)
	source, err := os.ReadFile("testdata/ok/complete.yaml")
	if err != nil {
		t.Fatal(err)
	}
	whole := decoded(t, source)
	places, tried, refused := 0, 0, 0
	mutate(whole, "", func(path string, set func(any)) {
		places++
		for i, value := range []any{map[string]any{"zzz": 1}, nil, true, -0.5, "zzz", "", []any{"a"}} {
			if i > 0 && (i+places)%3 > 0 {
				continue // a third of them in each place, which takes 3 s instead of 10
			}
			set(value)
			schema := r.Validate(whole) != nil
			tried++
			if schema {
				refused++
			}
			_, shape := value.(map[string]any)
			if !schema && !shape {
				continue // Parse may think of it what it likes
			}
			b, err := json.Marshal(whole)
			if err != nil {
				t.Fatal(err)
			}
			_, issues := Parse("testdata/ok/complete.yaml", b, nil)
			ours := Failed(issues, false)
			if schema && !ours {
				t.Errorf("%s: %v is refused by the schema only", path, value)
			}
			if ours && !schema && strings.Contains(fmt.Sprint(issues), "unknown key") {
				t.Errorf("%s: %v has a key that only Parse refuses", path, value)
			}
		}
	})
	if tried < 500 || refused < tried/2 {
		t.Errorf("%d values tried, %d refused by the schema: too few to mean anything", tried, refused)
	}
}

// mutate calls try for every value in v. What set leaves there is undone after it.
func mutate(v any, path string, try func(path string, set func(any))) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			old := v[key]
			try(path+"."+key, func(value any) { v[key] = value })
			v[key] = old
			mutate(old, path+"."+key, try)
		}
	case []any:
		for i, old := range v {
			at := fmt.Sprintf("%s[%d]", path, i)
			try(at, func(value any) { v[i] = value })
			v[i] = old
			mutate(old, at, try)
		}
	}
}

// TestTheSchemaHasEveryField compares it with the structs, both ways.
func TestTheSchemaHasEveryField(t *testing.T) {
	t.Parallel()
	var root struct {
		Properties map[string]any
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, typ := range structs() {
		got := root.Properties
		if typ != reflect.TypeFor[File]() {
			seen++
			got = root.Defs[typ.Name()].Properties
		}
		want := names(fieldsOf(typ))
		slices.Sort(want)
		if have := slices.Sorted(maps.Keys(got)); !slices.Equal(have, want) {
			t.Errorf("%s: the schema has %v, the struct %v", typ.Name(), have, want)
		}
	}
	if seen != len(root.Defs) {
		t.Errorf("the schema has %d definitions, the structs are %d", len(root.Defs), seen)
	}
}

// TestTheSchemaIsAsCommitted makes every change of the format show in a review.
func TestTheSchemaIsAsCommitted(t *testing.T) {
	t.Parallel()
	const path = "testdata/schema.json"
	if updating() {
		if err := os.WriteFile(path, Schema(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != string(Schema()) {
		t.Errorf("%s differs from Schema() (%v); go test -update writes it anew", path, err)
	}
}

// updating reports whether -update was given, which the golden files' test defines.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// structs returns the structs of the format, each after the one that names it first.
func structs() []reflect.Type {
	list := []reflect.Type{reflect.TypeFor[File]()}
	for i := 0; i < len(list); i++ {
		for _, f := range fieldsOf(list[i]) {
			typ := f.typ
			for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
				typ = typ.Elem()
			}
			if typ.Kind() == reflect.Struct && typ != textType && typ != rowsType && !slices.Contains(list, typ) {
				list = append(list, typ)
			}
		}
	}
	return list
}

func TestEveryDefaultCanBeRead(t *testing.T) {
	t.Parallel()
	for _, typ := range structs() {
		for _, f := range fieldsOf(typ) {
			if f.def != "" {
				setDefault(reflect.New(typ).Elem().Field(f.index), f)
			}
			if f.def != "" && f.unset != "" || f.required && f.def+f.unset != "" {
				t.Errorf("%s.%s has two defaults, or is required and has one", typ.Name(), f.name)
			}
			if f.doc == "" || !strings.HasSuffix(f.doc, ".") {
				t.Errorf("%s.%s has no sentence that says what it is", typ.Name(), f.name)
			}
		}
	}
}

// TestTheCompleteFileIsComplete: the other tests rely on it to have every field.
func TestTheCompleteFileIsComplete(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("testdata/ok/complete.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := newReader()
	if r.root, err = readYAML(string(source)); err != nil {
		t.Fatal(err)
	}
	r.readStruct(reflect.ValueOf(&File{}).Elem(), r.root, "")
	var paths []string
	for path := range r.places {
		paths = append(paths, path)
	}
	all := strings.Join(paths, "\n") + "\n"
	for _, typ := range structs() {
		for _, f := range fieldsOf(typ) {
			if !strings.Contains("\n"+all, "."+f.name+"\n") && !strings.Contains("\n"+all, "\n"+f.name+"\n") {
				t.Errorf("testdata/ok/complete.yaml has no %s of %s", f.name, typ.Name())
			}
		}
	}
}

// TestDefaultsAreFieldsOfAJob: fill finds them by their names.
func TestDefaultsAreFieldsOfAJob(t *testing.T) {
	t.Parallel()
	of := fieldsOf(reflect.TypeFor[Job]())
	for _, f := range fieldsOf(reflect.TypeFor[Defaults]()) {
		i := slices.IndexFunc(of, func(j field) bool { return j.name == f.name })
		if i < 0 || of[i].typ != f.typ || of[i].min != f.min || of[i].max != f.max || of[i].none != f.none || !slices.Equal(of[i].enum, f.enum) {
			t.Errorf("defaults.%s is not like the job's field", f.name)
		}
	}
}
