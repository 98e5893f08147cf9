package web

import (
	"net/url"
	"strings"
)

// apiPath is what a path below /locks/ or /fences/ names.
type apiPath struct {
	Resource string // the name, percent-decoded; empty when it has a fault
	Action   string // renew, history, check, or empty
	Faults   []fault
}

// parsePath reads what stands after /locks/ or /fences/, still percent-encoded: /%2F belongs to the name, / ends it.
// False: nothing has this address. No path is cleaned, so that each has one meaning.
func parsePath(escaped string) (apiPath, bool) {
	name, rest, more := strings.Cut(escaped, "/")
	if name == "" {
		return apiPath{}, false
	}
	p := apiPath{}
	if more {
		action, err := url.PathUnescape(rest)
		if err != nil || !isAction(action) {
			return apiPath{}, false
		}
		p.Action = action
	}
	resource, err := url.PathUnescape(name)
	if err != nil {
		return apiPath{}, false
	}
	if why := badName(resource); why != "" {
		p.Faults = []fault{{"/resource", "The name in the path " + why}}
		return p, true
	}
	p.Resource = resource
	return p, true
}

func isAction(s string) bool { return s == "renew" || s == "history" || s == "check" }
