package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/nearest"
)

// What the values of a param are.
const (
	ParamString = "string"
	ParamInt    = "int"    // of 64 bits
	ParamNumber = "number" // a float64
	ParamBool   = "bool"
)

// Param is a value that a trigger, a backfill or a rerun may give to a job's runs. Default and the values of Enum are
// string, int64 (int too), float64 or bool, as Type says.
type Param struct {
	Type    string // ParamString, ParamInt, ParamNumber, ParamBool
	Default any    // where none is given; only a @manual job may do without
	Enum    []any  // the only values that it may have; default any of the type
}

// Params are the values of a run's params by name: string, int64, float64 or bool, as the param's type says.
type Params map[string]any

// Text is a param's value as text, "" if it has none.
func (p Params) Text(name string) string { return paramText(p[name]) }

// ErrParam is what every [*ParamError] is.
var ErrParam = errors.New("jobs: wrong param")

// ParamError names the param that can't be given so, its value and the fix.
type ParamError struct {
	Job, Name, Value string
	Problem, Fix     string
}

// Error implements error.
func (e *ParamError) Error() string {
	return fmt.Sprintf("jobs: %s: param %q %s: %s", e.Job, e.Name, e.Problem, e.Fix)
}

// Is makes the error an [ErrParam].
func (e *ParamError) Is(target error) bool { return target == ErrParam }

// paramShape is what is stored of a param: enough to check what is given, and to show it. Values are texts.
type paramShape struct {
	Type    string   `json:"type"`
	Default *string  `json:"default,omitempty"`
	Enum    []string `json:"enum,omitempty"`
}

func (p Param) shape() paramShape {
	s := paramShape{Type: p.Type}
	if p.Default != nil {
		s.Default = ptr(paramText(p.Default))
	}
	for _, v := range p.Enum {
		s.Enum = append(s.Enum, paramText(v))
	}
	return s
}

var paramName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// checkParams returns the first param that can't be used.
func (j Job) checkParams() error {
	for _, name := range slices.Sorted(maps.Keys(j.Params)) {
		p := j.Params[name]
		bad := func(value any, fix string) error { return &ConfigError{j.Name, "Params." + name, value, fix} }
		shape := p.shape()
		wrong := func(v any) bool {
			got, problem, _ := paramShape{Type: p.Type}.value(paramText(v))
			_, text := v.(string)
			return problem != "" || text != (p.Type == ParamString) || paramText(got) != paramText(v)
		}
		switch {
		case !paramName.MatchString(name):
			return bad(name, "use a lower-case letter, then up to 62 of a-z, 0-9 and _")
		case !slices.Contains([]string{ParamString, ParamInt, ParamNumber, ParamBool}, p.Type):
			return bad(p.Type, "use the type string, int, number or bool")
		case slices.ContainsFunc(p.Enum, wrong):
			return bad(p.Enum, "give values of type "+p.Type)
		case p.Default == nil && j.Schedule != "@manual":
			return bad(nil, "give it a default, which a scheduled run needs")
		case p.Default == nil:
		case wrong(p.Default):
			return bad(p.Default, "give a default of type "+p.Type)
		case len(p.Enum) > 0 && !slices.Contains(shape.Enum, *shape.Default):
			return bad(p.Default, "give a default that is in the enum")
		}
	}
	return nil
}

// value reads a value that is given as text.
func (s paramShape) value(text string) (v any, problem, fix string) {
	var err error
	switch v = text; s.Type {
	case ParamInt:
		v, err = strconv.ParseInt(text, 10, 64)
		fix = "give a whole number, such as 42"
	case ParamNumber:
		var f float64
		if f, err = strconv.ParseFloat(text, 64); err == nil && (f-f != 0 || strings.ContainsAny(text, "xX_")) {
			err = strconv.ErrSyntax // no JSON number
		}
		v, fix = f, "give a number, such as 1.5"
	case ParamBool:
		v, err = text == "true", nil
		if text != "true" && text != "false" {
			err = strconv.ErrSyntax
		}
		fix = "give true or false"
	default:
		if storable(text) != text {
			err = strconv.ErrSyntax
		}
		fix = "give UTF-8 without NUL"
	}
	switch {
	case err != nil:
		return nil, fmt.Sprintf("is %.60q", text), fix
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, paramText(v)):
		return nil, fmt.Sprintf("is %.60q", text), "give " + alternatives(s.Enum)
	}
	return v, "", ""
}

// alternatives lists values in words.
func alternatives(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = strconv.Quote(v)
	}
	if n := len(quoted) - 1; n > 0 {
		return strings.Join(quoted[:n], ", ") + " or " + quoted[n]
	}
	return quoted[0]
}

// paramText is a value as people write it.
func paramText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// given checks what is given to a period besides what it has been given before. It returns what is stored: nil for
// nothing at all.
func (d definition) given(before json.RawMessage, params map[string]string) (json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	if len(before) > 0 {
		if err := json.Unmarshal(before, &values); err != nil {
			return nil, fmt.Errorf("jobs: params of %s: %w", d.Job, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		s, known := d.Params[name]
		if !known {
			return nil, d.unknownParam(name, params[name])
		}
		v, problem, fix := s.value(params[name])
		if problem != "" {
			return nil, &ParamError{d.Job, name, params[name], problem, fix}
		}
		values[name] = marshalled(v)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Params)) {
		if _, set := values[name]; !set && d.Params[name].Default == nil {
			return nil, &ParamError{d.Job, name, "", "is missing", "it has no default, so give it a value"}
		}
	}
	if len(values) == 0 {
		return nil, nil
	}
	return marshalled(values), nil
}

// CheckGiven returns a [*ParamError] for the first of params that the job can't be given.
func (j Job) CheckGiven(params map[string]string) error {
	_, err := j.definition("").given(nil, params)
	return err
}

func (d definition) unknownParam(name, value string) error {
	fix := "the job has no params"
	if names := slices.Sorted(maps.Keys(d.Params)); len(names) > 0 {
		fix = "the job has " + strings.Join(names, ", ") + "." + nearest.DidYouMean(name, names)
	}
	return &ParamError{d.Job, name, value, "is not declared", fix}
}

func marshalled(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain values only
	}
	return b
}
