package web

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// pointers lists where the faults are, as one string; malformed stands for a body that isn't read at all.
func pointers(faults []fault, err error) string {
	var bad malformedError
	if errors.As(err, &bad) {
		return "malformed"
	}
	all := make([]string, 0, len(faults))
	for _, f := range faults {
		all = append(all, f.Pointer)
	}
	return strings.Join(all, " ")
}

func TestBodyIsOneUnambiguousJSONText(t *testing.T) {
	t.Parallel()
	for body, accepted := range map[string]bool{
		`{"owner":"a","ttl_seconds":5}`:                       true,
		" \t\r\n{\"owner\": \"a\" , \"ttl_seconds\" : 5 } \n": true,
		`{"\u006fwner":"a","ttl_seconds":5}`:                  true,
		`{"owner":"\ud83d\udd12","ttl_seconds":5}`:            true,
		`{"owner":"\uD83D\uDD12\\ud800","ttl_seconds":5}`:     true,
		`{"owner":"a\\\u00e9\"\/","ttl_seconds":5}`:           true,
		"":                                                                   false,
		" \n":                                                                false,
		"\ufeff{}":                                                           false,
		`{"owner":"a","ttl_seconds":5} x`:                                    false,
		`{"owner":"a","ttl_seconds":5}{}`:                                    false,
		`{"owner":"a","ttl_seconds":5,}`:                                     false,
		`{"owner":'a'}`:                                                      false,
		`{"owner":"a","ttl_seconds":05}`:                                     false,
		`{"owner":"a","ttl_seconds":+5}`:                                     false,
		`{"owner":"a","ttl_seconds":NaN}`:                                    false,
		"{\"owner\":\"a\x00\",\"ttl_seconds\":5}":                            false,
		"{\"owner\":\"\xff\",\"ttl_seconds\":5}":                             false,
		"{\"owner\":\"\xed\xa0\x80\",\"ttl_seconds\":5}":                     false,
		`{"owner":"a","owner":"a","ttl_seconds":5}`:                          false,
		`{"owner":"a","\u006fwner":"b","ttl_seconds":5}`:                     false,
		`{"owner":"\ud800","ttl_seconds":5}`:                                 false,
		`{"owner":"\udc00\ud800","ttl_seconds":5}`:                           false,
		`{"owner":"\ud800\u0041","ttl_seconds":5}`:                           false,
		`{"owner":"\ud800\n","ttl_seconds":5}`:                               false,
		`{"owner":"\ud83d\ud83d\udd12","ttl_seconds":5}`:                     false,
		`{"owner":"\\\udbff","ttl_seconds":5}`:                               false,
		`{"\udfff":1}`:                                                       false,
		strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001):            false,
		`{"owner":"a","ttl_seconds":5,"x":` + strings.Repeat("[", 100) + `}`: false,
	} {
		_, faults, err := parseAcquire([]byte(body))
		if got := pointers(faults, err); (got == "") != accepted || !accepted && got != "malformed" {
			t.Errorf("%.60q: %q, %v; accepted should be %t", body, got, err, accepted)
		}
		if err != nil && !strings.HasSuffix(err.Error(), ".") {
			t.Errorf("%.60q: %q should be a sentence", body, err)
		}
	}
}

func TestANameTwiceIsMalformedAtAnyDepth(t *testing.T) {
	t.Parallel()
	for text, twice := range map[string]bool{
		`{"a":{"b":1,"c":2},"b":{"b":1}}`:           false,
		`[{"a":1},{"a":1}]`:                         false,
		`{"a":"a","b":"a"}`:                         false,
		`{"a":["a","a",{"a":"a"}],"b":["b"]}`:       false,
		`{"a":{},"b":[],"c":null,"d":true,"e":1e9}`: false,
		`"a"`:                     false,
		`{"a":"b","b":"a"}`:       false,
		`["a","b","a"]`:           false,
		`{"a":{"b":1,"b":1}}`:     true,
		`[[{"a":[],"a":1}]]`:      true,
		`{"a":{"a":1},"a":1}`:     true,
		`{"a":["x"],"b":1,"a":1}`: true,
		`{"":0,"":0}`:             true,
	} {
		if err := strictJSON([]byte(text)); (err != nil) != twice {
			t.Errorf("%s: %v, a name twice: %t", text, err, twice)
		}
	}
}

func TestOnlyWholeSurrogatePairsAreTaken(t *testing.T) {
	t.Parallel()
	for text, whole := range map[string]bool{
		`["\ud7ff","\ue000"]`: true, `["\ud800\udc00","\udbff\udfff"]`: true, `["\\\ud800\udc00"]`: true,
		`["\udc00\udc00"]`: false, `["\ud800","\udc00"]`: false, `["\ud800\ud800"]`: false, `["\ud800\ue000"]`: false, `["\ud800udc00"]`: false,
	} {
		if err := strictJSON([]byte(text)); (err == nil) != whole {
			t.Errorf("%s: %v, whole: %t", text, err, whole)
		}
	}
}

func TestAllFaultsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 256)
	for body, want := range map[string]string{
		`{}`:                                    "/owner /ttl_seconds",
		`{"owner":" ","ttl_seconds":0}`:         "/owner /ttl_seconds",
		`{"Owner":"a","TTL_SECONDS":5,"a/~":1}`: "/Owner /TTL_SECONDS /a~1~0 /owner /ttl_seconds",
		`{"owner":"` + long + `","ttl_seconds":86401,"":{}}`: "/ /owner /ttl_seconds",
		`[]`: "", `null`: "", `"a"`: "", `1`: "", `true`: "",
	} {
		_, faults, err := parseAcquire([]byte(body))
		if got := pointers(faults, err); got != want || len(faults) == 0 {
			t.Errorf("%.40s: %q (%v), want %q", body, got, faults, want)
		}
		for _, f := range faults {
			if !strings.HasSuffix(f.Detail, ".") || strings.Contains(f.Detail, long[:30]) {
				t.Errorf("%.40s: %q should be a sentence that doesn't repeat a long value", body, f.Detail)
			}
		}
	}
}

func TestTTLIsAnIntegerOfSeconds(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"1": time.Second, "86400": 24 * time.Hour, "0": 0, "-0": 0, "-100": 0, "86401": 0, "1.5": 0, "60.0": 0, "1e3": 0,
		`"10"`: 0, "true": 0, "false": 0, "null": 0, "[10]": 0, `{"s":1}`: 0, "2147483648": 0, "9223372036854775807": 0,
		"9223372036854775808": 0, "18446744073709551617": 0, "1e400": 0, "1" + strings.Repeat("0", 400): 0,
	} {
		b, faults, err := parseAcquire([]byte(`{"owner":"a","ttl_seconds":` + value + `}`))
		if fine := want > 0; err != nil || (len(faults) == 0) != fine || b.TTL != want {
			t.Errorf("%.30s: %v with %v, %v; want %v", value, b.TTL, faults, err, want)
		}
		if len(faults) > 0 && len(faults[0].Detail) > 100 {
			t.Errorf("%.30s: %q is too long", value, faults[0].Detail)
		}
	}
}

func TestOwnerIsTrimmedAndVisible(t *testing.T) {
	t.Parallel()
	for owner, want := range map[string]string{
		"a": "a", "\u00a0\u3000 a b\t\n": "a b", "\u0430lice": "\u0430lice", "<b>": "<b>", "e\u0301": "e\u0301",
		strings.Repeat("x", 255): strings.Repeat("x", 255), "  " + strings.Repeat("€", 85): strings.Repeat("€", 85),
		strings.Repeat("x", 256): "", strings.Repeat("€", 86): "",
		"": "", " \t": "", "\u3000": "", "\u200b": "", "\ufeff": "", "\u00ad": "", "\u2028": "", "\u3164": "", "\u2800": "", "\ufe0f": "",
		"a\x00b": "", "a\r\nb": "", "a\u0085b": "", "a\x7f": "", "\xff": "", "a\xed\xa0\x80": "",
	} {
		got, faults := checkOwner(owner)
		if got != want || (len(faults) == 0) != (want != "") {
			t.Errorf("%.20q: %q with %v, want %q", owner, got, faults, want)
		}
	}
}

func TestReleaseTakesTheOwnerFromOnePlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, query, owner, faults string }{
		{`{"owner":" a "}`, "", "a", ""},
		{"", "owner=+a%20", "a", ""},
		{`{"owner":"a"}`, "owner=a", "a", ""},
		{`{"owner":"a"}`, "owner=b", "b", "/owner"},
		{"", "", "", "/owner"},
		{"", "owner=", "", "/owner"},
		{"", "owner=%FF", "", "/owner"},
		{"", "owner=a&owner=a", "a", "/owner"},
		{"", "Owner=a", "", "/Owner /owner"},
		{`{"owner":1}`, "", "", "/owner"},
		{`{"ttl_seconds":1}`, "", "", "/ttl_seconds /owner"},
		{`[]`, "", "", ""},
		{" ", "", "", "malformed"},
		{`{"owner":"a"`, "owner=a", "", "malformed"},
		{"", "owner=%zz", "", "malformed"},
		{"", "owner=a;b", "", "malformed"},
	} {
		owner, faults, err := parseRelease([]byte(c.body), c.query)
		if got := pointers(faults, err); got != c.faults || owner != c.owner {
			t.Errorf("%s ?%s: %q with %q (%v), want %q with %q", c.body, c.query, owner, got, err, c.owner, c.faults)
		}
	}
}

func TestFenceNamesALockAndAToken(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"lock":"x 14","fencing_token":1}`:                  "",
		`{"lock":"x","fencing_token":9223372036854775807}`:   "",
		`{"lock":"x","fencing_token":9223372036854775808}`:   "/fencing_token",
		`{"lock":"","fencing_token":0}`:                      "/lock /fencing_token",
		`{"lock":7,"fencing_token":"7"}`:                     "/lock /fencing_token",
		`{"lock":"a\u0000"}`:                                 "/lock /fencing_token",
		`{"fencing_token":1,"owner":"a"}`:                    "/owner /lock",
		`{"lock":"x","lock":"x","fencing_token":1}`:          "malformed",
		`{"lock":"` + strings.Repeat("x", 256) + `","t":1 }`: "/t /lock /fencing_token",
	} {
		lock, token, faults, err := parseFence([]byte(body))
		if got := pointers(faults, err); got != want || got == "" && (lock == "" || token < 1) {
			t.Errorf("%.50s: %q (%v), want %q", body, got, faults, want)
		}
	}
	if _, _, faults, err := parseFence([]byte("[]")); err != nil || len(faults) != 1 {
		t.Errorf("an array: %v, %v", faults, err)
	}
}
