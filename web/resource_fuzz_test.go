package web

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func FuzzPath(f *testing.F) {
	f.Fuzz(func(t *testing.T, escaped string) {
		p, ok := parsePath(escaped)
		segments := strings.Split(escaped, "/")
		name, err := url.PathUnescape(segments[0])
		switch {
		case !ok:
			if p.Resource != "" || p.Action != "" || p.Faults != nil {
				t.Fatalf("no path, yet %+v", p)
			}
			if name != "" && err == nil && len(segments) == 1 {
				t.Fatalf("%q is a name", name)
			}
			return
		case err != nil || name == "" || len(segments) > 2 || (len(segments) == 2) != (p.Action != ""):
			t.Fatalf("%+v of %q, %v", p, segments, err)
		case len(p.Faults) > 0:
			if p.Resource != "" || len(p.Faults) != 1 {
				t.Fatalf("%+v has faults and a name", p)
			}
			return
		case p.Resource != name:
			t.Fatalf("%q, unescaped %q", p.Resource, name)
		}
		named(t, p.Resource)
		for _, again := range []string{url.PathEscape(p.Resource), everyByte(p.Resource)} {
			if p.Action != "" {
				again += "/" + p.Action
			}
			if q, ok := parsePath(again); !ok || q.Resource != p.Resource || q.Action != p.Action || q.Faults != nil {
				t.Fatalf("%q: %+v; escaped again as %q: %+v, %t", escaped, p, again, q, ok)
			}
		}
		onTheWire(t, p)
	})
}

// onTheWire: a URL that Go makes and parses carries the name whole, slashes and dots included.
func onTheWire(t *testing.T, p apiPath) {
	t.Helper()
	u, err := url.ParseRequestURI("/locks/" + url.PathEscape(p.Resource))
	if err != nil {
		t.Fatal(err)
	}
	if q, ok := parsePath(strings.TrimPrefix(u.EscapedPath(), "/locks/")); !ok || q.Resource != p.Resource {
		t.Fatalf("%q over the wire is %+v, %t", p.Resource, q, ok)
	}
}

func everyByte(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02x", s[i])
	}
	return b.String()
}
