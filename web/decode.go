package web

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxBody is the longest body that is read, in bytes; a longer one is a 413.
const maxBody = 16 << 10

// fault is one value that breaks a rule. All faults of a request are answered at once, with 422.
type fault struct {
	Pointer string `json:"pointer"` // RFC 6901, into the body; /resource is the name in the path
	Detail  string `json:"detail"`
}

// malformedError says why a request isn't one unambiguous thing: it is the detail of a 400.
type malformedError string

func (e malformedError) Error() string { return string(e) }

// acquireBody is what acquire and renew are told.
type acquireBody struct {
	Owner string // trimmed
	TTL   time.Duration
}

// parseAcquire reads {"owner","ttl_seconds"}. The error is a malformedError; faults are the values' fault.
func parseAcquire(body []byte) (acquireBody, []fault, error) {
	f, faults, err := readObject(body, "owner", "ttl_seconds")
	if err != nil || f == nil {
		return acquireBody{}, faults, err
	}
	b := acquireBody{Owner: f.owner(&faults), TTL: f.ttl(&faults)}
	return b, faults, nil
}

// parseOwner reads {"owner"}, the body of a release.
func parseOwner(body []byte) (owner string, _ []fault, _ error) {
	f, faults, err := readObject(body, "owner")
	if err != nil || f == nil {
		return "", faults, err
	}
	return f.owner(&faults), faults, nil
}

// parseFence reads {"lock","fencing_token"}, the body of a check.
func parseFence(body []byte) (lock string, token int64, _ []fault, _ error) {
	f, faults, err := readObject(body, "lock", "fencing_token")
	if err != nil || f == nil {
		return "", 0, faults, err
	}
	lock, token = f.lock(&faults), f.token(&faults)
	return lock, token, faults, nil
}

// parseRelease takes the owner from the body, from ?owner=, or from both when they agree.
func parseRelease(body []byte, rawQuery string) (owner string, _ []fault, _ error) {
	query, faults, err := parseQuery(rawQuery, "owner")
	if err != nil {
		return "", nil, err
	}
	if len(body) > 0 {
		var more []fault
		if owner, more, err = parseOwner(body); err != nil {
			return "", nil, err
		}
		faults = append(faults, more...)
	}
	switch {
	case query.Has("owner"):
		asked, more := checkOwner(query.Get("owner"))
		faults = append(faults, more...)
		if len(body) > 0 && len(faults) == 0 && asked != owner {
			faults = append(faults, fault{"/owner", "owner in the body and in the query differ: send one of them."})
		}
		owner = asked
	case len(body) == 0:
		faults = append(faults, fault{"/owner", "owner is missing: send it in the body or as ?owner=."})
	}
	return owner, faults, nil
}

// parseQuery reads a query whose names are these, each at most once.
func parseQuery(raw string, names ...string) (url.Values, []fault, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, nil, malformedError("The query is malformed: percent-encode its values.")
	}
	var faults []fault
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case !slices.Contains(names, name):
			faults = append(faults, unknown(name, names))
		case len(query[name]) > 1:
			faults = append(faults, fault{pointer(name), name + " is given more than once in the query: send it once."})
		}
	}
	return query, faults, nil
}

// fields is a JSON object whose values are still to be judged.
type fields map[string]json.RawMessage

// readObject finds names that aren't among these. Where the text is no object it returns nil and that fault.
func readObject(body []byte, names ...string) (fields, []fault, error) {
	if err := strictJSON(body); err != nil {
		return nil, nil, err
	}
	var f fields
	if _ = json.Unmarshal(body, &f); f == nil { // null, or no object: the text itself has been checked
		return nil, []fault{{"", "The body must be a JSON object with " + strings.Join(names, " and ") + "."}}, nil
	}
	var faults []fault
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !slices.Contains(names, name) {
			faults = append(faults, unknown(name, names))
		}
	}
	return f, faults, nil
}

func unknown(name string, names []string) fault {
	return fault{pointer(name), "This name is not known here: use " + strings.Join(names, " and ") + ", spelt just so."}
}

// pointer is the JSON pointer (RFC 6901) to a name of the outermost object.
func pointer(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
