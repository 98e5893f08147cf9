package jobs

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// mostChanges is how many places of a changed request are named.
const mostChanges = 3

// changes names what differs in two requests by its place, not by its value: who sees the error of a run may not see what it
// sends.
func changes(was, is string) string {
	var a, b any
	if json.Unmarshal([]byte(was), &a) != nil || json.Unmarshal([]byte(is), &b) != nil {
		return "it"
	}
	places := unlike(a, b, "")
	if len(places) == 0 { // numbers that are alike, but not the same
		return "it"
	}
	if len(places) > mostChanges {
		places = append(places[:mostChanges], "more")
	}
	return strings.Join(places, ", ")
}

// unlike are the JSON pointers to what differs.
func unlike(a, b any, at string) (places []string) {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			break
		}
		var names []string
		for name := range a {
			names = append(names, name)
		}
		for name := range b {
			if _, there := a[name]; !there {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			places = append(places, unlike(a[name], b[name], at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name))...)
		}
		return places
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		for i := range a {
			places = append(places, unlike(a[i], b[i], at+"/"+strconv.Itoa(i))...)
		}
		return places
	}
	if reflect.DeepEqual(a, b) {
		return nil
	}
	if at == "" {
		at = "it"
	}
	return []string{at}
}
