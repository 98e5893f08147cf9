package web

import (
	"net/http"
	"strings"
	"testing"
)

func TestOnlyJSONInUTF8IsTaken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		media, coding string
		taken         bool
	}{
		{"application/json", "", true},
		{"APPLICATION/JSON", "identity", true},
		{"application/json; charset=UTF-8", " Identity ", true},
		{`application/json;charset="utf-8"; v=1`, "", true},
		{"application/json; charset=iso-8859-1", "", false},
		{"application/json; charset", "", false},
		{"application/json, text/plain", "", false},
		{"application/jsonx", "", false},
		{"application/problem+json", "", false},
		{"text/plain", "", false},
		{"", "", false},
		{"application/json", "gzip", false},
		{"application/json", "identity, gzip", false},
	} {
		h := http.Header{"Content-Type": {c.media}, "Content-Encoding": {c.coding}}
		if got := jsonContent(h); got != c.taken {
			t.Errorf("%q coded %q: taken %t, want %t", c.media, c.coding, got, c.taken)
		}
	}
	if jsonContent(http.Header{}) || jsonContent(http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"identity", "br"}}) {
		t.Error("a body without a type, or with a second coding, is taken")
	}
}

func TestSingleValuedHeadersComeOnce(t *testing.T) {
	t.Parallel()
	h := http.Header{"Accept": {"a", "b"}, "Content-Type": {"application/json"}}
	if got := repeatedHeader(h); got != "" {
		t.Errorf("%s is called repeated", got)
	}
	for _, name := range []string{"Authorization", "Content-Type", "Idempotency-Key", "If-Match", "X-Request-Id"} {
		if got := repeatedHeader(http.Header{name: {"a", "a"}}); got != name {
			t.Errorf("%s twice: %q", name, got)
		}
	}
}

func TestIdempotencyKeyIsShortAndPrintable(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 255)
	for key, fine := range map[string]bool{
		"a": true, `"8e03978e-40d5"`: true, "a b~": true, long: true, long + "k": false, "": false, "\t": false, "é": false, "a\x7f": false,
	} {
		got, err := idempotencyKey(http.Header{"Idempotency-Key": {key}})
		if (err == nil) != fine || fine && got != key {
			t.Errorf("%.20q: %.20q, %v", key, got, err)
		}
	}
	if got, err := idempotencyKey(http.Header{}); got != "" || err != nil {
		t.Errorf("none: %q, %v", got, err)
	}
	if _, err := idempotencyKey(http.Header{"Idempotency-Key": {"a", "a"}}); err == nil {
		t.Error("two are taken")
	}
}

func TestIfMatchNamesOneAcquisition(t *testing.T) {
	t.Parallel()
	const malformed = -2
	for tag, want := range map[string]int64{
		"*": 0, `"1"`: 1, `"9223372036854775807"`: 1<<63 - 1,
		`"9223372036854775808"`: noToken, `"0"`: noToken, `"-1"`: noToken, `"007"`: noToken, `"+7"`: noToken, `""`: noToken, `"abc"`: noToken, `W/"7"`: noToken,
		"": malformed, "7": malformed, `"`: malformed, `"7`: malformed, `7"`: malformed, `"1", "2"`: malformed, `*, "1"`: malformed, "W/7": malformed,
	} {
		got, err := ifMatch(http.Header{"If-Match": {tag}})
		if err != nil {
			got = malformed
		}
		if got != want {
			t.Errorf("%s: %d (%v), want %d", tag, got, err, want)
		}
	}
	if got, err := ifMatch(http.Header{}); got != 0 || err != nil {
		t.Errorf("none: %d, %v", got, err)
	}
	if _, err := ifMatch(http.Header{"If-Match": {`"1"`, `"2"`}}); err == nil {
		t.Error("two are taken")
	}
}
