package ui

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"pawl/jobs"
)

const paramField = "param." // what the names of the fields of a job's params begin with

// param is a param that a job's definition declares, as a form asks for it.
type param struct {
	Name, Type, Default string
	Enum                []string
	Required            bool
}

// Field is the name of its field.
func (p param) Field() string { return paramField + p.Name }

// paramsOf are the params that a stored definition declares, by name.
func paramsOf(definition json.RawMessage) (all []param) {
	var d struct {
		Params map[string]struct {
			Type    string   `json:"type"`
			Default *string  `json:"default"`
			Enum    []string `json:"enum"`
		} `json:"params"`
	}
	if json.Unmarshal(definition, &d) != nil {
		return nil // the job's health says why it can't be read
	}
	for _, name := range slices.Sorted(maps.Keys(d.Params)) {
		p := param{Name: name, Type: d.Params[name].Type, Enum: d.Params[name].Enum, Required: d.Params[name].Default == nil}
		if !p.Required {
			p.Default = *d.Params[name].Default
		}
		all = append(all, p)
	}
	return all
}

// params are those that a form gives.
func params(form url.Values) map[string]string {
	given := map[string]string{}
	for field, values := range form {
		if name, ok := strings.CutPrefix(field, paramField); ok && values[0] != "" {
			given[name] = values[0]
		}
	}
	return given
}

// badParam is what is wrong with one of them.
func badParam(err *jobs.ParamError) *fieldError {
	return &fieldError{paramField + err.Name, "Param " + err.Name + " " + err.Problem + ": " + strings.TrimSuffix(err.Fix, ".") + "."}
}
