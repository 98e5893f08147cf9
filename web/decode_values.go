package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxNameBytes = 255 // of a lock, an owner or a target
	maxTTL       = 24 * time.Hour
)

// checkOwner trims owner of Unicode white space, as every route does, and judges it.
func checkOwner(owner string) (string, []fault) {
	owner = strings.TrimSpace(owner)
	if why := badName(owner); why != "" {
		return "", []fault{{"/owner", "owner " + why}}
	}
	return owner, nil
}

// badName says what is wrong with a name of a lock, an owner or a target, and what to do. Empty: nothing.
func badName(name string) string {
	switch {
	case name == "":
		return "is empty: give it 1 to 255 bytes."
	case len(name) > maxNameBytes:
		return fmt.Sprintf("is %d bytes long: use at most %d.", len(name), maxNameBytes)
	case !utf8.ValidString(name):
		return "is not UTF-8: send UTF-8."
	case strings.ContainsFunc(name, unicode.IsControl):
		return "has a control character: leave it out."
	case !strings.ContainsFunc(name, visible):
		return "has no visible character: give it one."
	default:
		return ""
	}
}

// visible tells whether people see r: no space, and nothing that is drawn as one or not at all.
func visible(r rune) bool {
	const brailleBlank = '\u2800'
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && r != brailleBlank &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

func (f fields) owner(faults *[]fault) string {
	owner, ok := f.text("owner", faults)
	if !ok {
		return ""
	}
	owner, more := checkOwner(owner)
	*faults = append(*faults, more...)
	return owner
}

func (f fields) lock(faults *[]fault) string {
	lock, ok := f.text("lock", faults)
	if !ok {
		return ""
	}
	if why := badName(lock); why != "" {
		*faults = append(*faults, fault{"/lock", "lock " + why})
		return ""
	}
	return lock
}

func (f fields) ttl(faults *[]fault) time.Duration {
	const most = int64(maxTTL / time.Second)
	return time.Duration(f.integer("ttl_seconds", most, faults)) * time.Second
}

func (f fields) token(faults *[]fault) int64 {
	const most = 1<<63 - 1
	return f.integer("fencing_token", most, faults)
}

// text is the string of that name; false with a fault where there is none.
func (f fields) text(name string, faults *[]fault) (string, bool) {
	raw, ok := f[name]
	switch {
	case !ok:
		*faults = append(*faults, fault{pointer(name), name + " is missing: send a string."})
		return "", false
	case raw[0] != '"':
		*faults = append(*faults, fault{pointer(name), name + " is " + shape(raw) + ": send a string."})
		return "", false
	}
	var s string
	_ = json.Unmarshal(raw, &s) // a string of a checked text
	return s, true
}

// integer is the whole number of that name, 1 to most, or 0 with a fault. Only digits are one: 60.0 and 1e3 aren't.
func (f fields) integer(name string, most int64, faults *[]fault) int64 {
	raw, ok := f[name]
	if ok {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err == nil && 1 <= n && n <= most {
			return n
		}
	}
	*faults = append(*faults, fault{pointer(name), fmt.Sprintf("%s is %s: send an integer from 1 to %d.", name, shape(raw), most)})
	return 0
}

// shape names what a value is, for a sentence.
func shape(raw json.RawMessage) string {
	switch {
	case len(raw) == 0:
		return "missing"
	case raw[0] == '"':
		return "a string"
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "an array"
	case bytes.ContainsAny(raw, "ntf"): // null, true and false
		return string(raw)
	case len(raw) > 20:
		return "a number of " + strconv.Itoa(len(raw)) + " characters"
	default:
		return string(raw)
	}
}
