package jobfile

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// Schema returns the JSON Schema (draft 2020-12) of the job file, for editors. It is made
// from the structs and refuses nothing that [Parse] takes; Parse sees much that it can't.
func Schema() []byte {
	defs := object{}
	root := structSchema(reflect.TypeFor[File](), defs)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "pawl job file"
	job := defs["Job"].(object)
	for _, kind := range kindNames() {
		others := []any{}
		for _, other := range kindNames() {
			if other != kind {
				others = append(others, object{"required": []string{other}})
			}
		}
		rule := object{
			"if":   object{"properties": object{"kind": object{"const": kind}}, "required": []string{"kind"}},
			"then": object{"required": []string{kind}, "not": object{"anyOf": others}},
		}
		all, _ := job["allOf"].([]any)
		job["allOf"] = append(all, rule)
	}
	root["$defs"] = defs
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		panic(err) // maps, lists and texts only
	}
	return b.Bytes()
}

type object = map[string]any

// structSchema returns the schema of a struct and adds those of its fields to defs.
func structSchema(t reflect.Type, defs object) object {
	properties, required := object{}, []string{}
	for _, f := range fieldsOf(t) {
		p := fieldSchema(f, defs)
		p["description"] = f.doc
		if v, ok := defaultValue(f); ok {
			p["default"] = v
		}
		properties[f.name] = p
		if f.required {
			required = append(required, f.name)
		}
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// The patterns of texts that stand for other things.
const (
	durationPattern = `^([0-9]+d)?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$`
	sizePattern     = `^[0-9]{1,9} ?(B|KiB|MiB|GiB)$`
	shardKeyPattern = `^[A-Za-z0-9][A-Za-z0-9._:@-]{0,63}$`
	rowsPattern     = `^(=|!=|>=|<=|>|<)? ?[0-9]{1,18}$`
)

// fieldSchema returns the schema of a field's value.
func fieldSchema(f field, defs object) object {
	switch f.typ {
	case durationType:
		if f.none {
			return object{"type": "string", "pattern": "^none$|" + durationPattern}
		}
		return object{"type": "string", "pattern": durationPattern}
	case sizeType:
		return object{"type": "string", "pattern": sizePattern}
	case rowsType:
		return object{"type": []string{"integer", "string"}, "pattern": rowsPattern}
	case causeType:
		return object{"anyOf": []any{object{"type": "integer", "minimum": 100, "maximum": 599}, object{"type": "string", "pattern": "^(connect|[1-5][0-9][0-9])$"}}}
	case textType:
		return object{"type": []string{"string", "number", "boolean"}}
	case shardsType:
		return shardsSchema(defs)
	}
	switch f.typ.Kind() {
	case reflect.Struct, reflect.Pointer:
		return object{"$ref": "#/$defs/" + define(f.typ, defs)}
	case reflect.Slice:
		list := object{"type": "array", "items": fieldSchema(f.item(), defs)}
		if f.single {
			return object{"anyOf": []any{list, fieldSchema(f.item(), defs)}}
		}
		return orNull(list)
	case reflect.Map:
		return orNull(object{"type": "object", "additionalProperties": fieldSchema(f.item(), defs)})
	case reflect.Interface:
		if f.scalar {
			return object{"type": []string{"string", "number", "boolean", "null"}}
		}
		return object{}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		return bounded(object{"type": "integer"}, f)
	default:
		return stringSchema(f)
	}
}

func shardsSchema(defs object) object {
	keys := object{"type": "array", "minItems": 1, "maxItems": mostShards, "uniqueItems": true, "items": object{"type": "string", "pattern": shardKeyPattern}}
	return object{"anyOf": []any{
		object{"type": "integer", "minimum": 1, "maximum": mostShards}, keys, object{"$ref": "#/$defs/" + define(shardsType, defs)},
	}}
}

// orNull allows nothing at all as well: a key whose list or map has been commented out.
func orNull(s object) object {
	s["type"] = []any{s["type"], "null"}
	return s
}

func stringSchema(f field) object {
	s := object{"type": "string"}
	switch {
	case len(f.enum) > 0:
		s["enum"] = f.enum
	case f.pattern != "":
		s["pattern"] = f.pattern
	default:
		s["minLength"] = 1
	}
	return s
}

func bounded(s object, f field) object {
	if n, err := strconv.Atoi(f.min); err == nil {
		s["minimum"] = n
	}
	if n, err := strconv.Atoi(f.max); err == nil {
		s["maximum"] = n
	}
	return s
}

// define adds the schema of a struct to defs, once, and returns its name there.
func define(t reflect.Type, defs object) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, done := defs[t.Name()]; !done {
		s := structSchema(t, defs)
		defs[t.Name()] = orNull(s)
	}
	return t.Name()
}

// defaultValue returns a field's default as JSON.
func defaultValue(f field) (any, bool) {
	if f.def == "" || strings.HasPrefix(f.def, "{") {
		return nil, false
	}
	n, err := readYAML(f.def)
	if err != nil {
		return nil, false
	}
	r := newReader()
	return r.tree(n, f.name, field{}), true
}
