package web

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte, query string) {
		text := strictJSON(body)
		if sound := plain(body); sound != (text == nil) {
			t.Fatalf("strictJSON: %v; by the other reader it is sound: %t", text, sound)
		}
		b, faults, err := parseAcquire(body)
		if (err == nil) != (text == nil) {
			t.Fatalf("parseAcquire: %v, strictJSON: %v", err, text)
		}
		if err == nil && len(faults) == 0 {
			agrees(t, body, b)
		}
		if owner, faults, err := parseOwner(body); err == nil && len(faults) == 0 {
			sameOwner(t, body, owner)
		}
		if lock, token, faults, err := parseFence(body); err == nil && len(faults) == 0 {
			sameFence(t, body, lock, token)
		}
		if owner, faults, err := parseRelease(body, query); err == nil && len(faults) == 0 {
			sameRelease(t, body, query, owner)
		}
	})
}

// agrees: encoding/json reads the same values, and the values written again are read as themselves.
func agrees(t *testing.T, body []byte, b acquireBody) {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil || len(v) != 2 {
		t.Fatalf("encoding/json: %v, %v", v, err)
	}
	seconds, owner := v["ttl_seconds"].(float64), v["owner"].(string)
	if b.TTL != time.Duration(seconds)*time.Second || b.TTL < time.Second || b.TTL > 24*time.Hour || b.Owner != strings.TrimSpace(owner) {
		t.Fatalf("%v, by encoding/json %v", b, v)
	}
	named(t, b.Owner)
	again, err := json.Marshal(map[string]any{"owner": b.Owner, "ttl_seconds": int64(b.TTL / time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	if c, faults, err := parseAcquire(again); err != nil || len(faults) > 0 || c != b {
		t.Fatalf("written again as %s: %v, %v, %v", again, c, faults, err)
	}
}

func sameOwner(t *testing.T, body []byte, owner string) {
	t.Helper()
	var v map[string]string
	if err := json.Unmarshal(body, &v); err != nil || len(v) != 1 || strings.TrimSpace(v["owner"]) != owner {
		t.Fatalf("owner %q, by encoding/json %v, %v", owner, v, err)
	}
	named(t, owner)
}

func sameFence(t *testing.T, body []byte, lock string, token int64) {
	t.Helper()
	var v struct {
		Lock  string `json:"lock"`
		Token int64  `json:"fencing_token"`
	}
	if err := json.Unmarshal(body, &v); err != nil || v.Lock != lock || v.Token != token || token < 1 {
		t.Fatalf("%q %d, by encoding/json %v, %v", lock, token, v, err)
	}
	named(t, lock)
	again, err := json.Marshal(map[string]any{"lock": lock, "fencing_token": token})
	if err != nil {
		t.Fatal(err)
	}
	if l, n, faults, err := parseFence(again); err != nil || len(faults) > 0 || l != lock || n != token {
		t.Fatalf("written again as %s: %q, %d, %v, %v", again, l, n, faults, err)
	}
}

// sameRelease: whoever names the owner twice names the same.
func sameRelease(t *testing.T, body []byte, query, owner string) {
	t.Helper()
	named(t, owner)
	asked, err := url.ParseQuery(query)
	if err != nil || len(asked["owner"]) > 1 || asked.Has("owner") && strings.TrimSpace(asked.Get("owner")) != owner {
		t.Fatalf("owner %q of ?%s, %v", owner, query, err)
	}
	if len(body) > 0 {
		sameOwner(t, body, owner)
	} else if !asked.Has("owner") {
		t.Fatalf("owner %q out of nothing", owner)
	}
}

func named(t *testing.T, name string) {
	t.Helper()
	if len(name) < 1 || len(name) > 255 || !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\r\n\x7f") {
		t.Fatalf("%q is a name", name)
	}
}

var (
	escapes = regexp.MustCompile(`(?s)\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u[dD][89a-fA-F]..|.)`)
	strs    = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"`)
)

// plain judges a text another way than strictJSON: by expressions for escapes, and by whether a reader that lets the
// last of equal names win keeps as many names as there are colons.
func plain(text []byte) bool {
	if !utf8.Valid(text) || !json.Valid(text) {
		return false
	}
	for _, e := range escapes.FindAll(text, -1) {
		if len(e) == len(`\ud800`) {
			return false
		}
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return false
	}
	return names(v) == bytes.Count(strs.ReplaceAll(text, nil), []byte(":"))
}

func names(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		for inner := range maps.Values(v) {
			n += 1 + names(inner)
		}
	case []any:
		for _, inner := range v {
			n += names(inner)
		}
	}
	return n
}
