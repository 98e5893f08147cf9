package docs_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pawl/jobs/alert"
)

// The page shows this function, byte for byte.
func genuine(secret, timestamp, signature string, body []byte) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "." + string(body)))
	sent, err := strconv.ParseInt(timestamp, 10, 64)
	return err == nil && time.Since(time.Unix(sent, 0)).Abs() < 5*time.Minute &&
		hmac.Equal([]byte("v1="+hex.EncodeToString(mac.Sum(nil))), []byte(signature))
}

// block is what stands between the fences after a line.
func block(t *testing.T, page, after string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, after+"\n")
	text, _, ended := strings.Cut(rest, "```\n")
	if !found || !ended {
		t.Fatalf("the page has no block %q", after)
	}
	return text
}

func TestTheChecksOfASignatureOnThePageKnowAGenuineOne(t *testing.T) {
	t.Parallel()
	page, source := read(t, "alerting.md"), read(t, "alerting_test.go")
	if !strings.Contains(source, "\n"+block(t, page, "```go")) {
		t.Error("the page shows another function than is tested")
	}
	const secret, body = "s3cret", `{"id":"1"}`
	now, old := strconv.FormatInt(time.Now().Unix(), 10), strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10)
	good := alert.Sign(secret, now, []byte(body))
	for _, c := range []struct {
		what, timestamp, signature, body, want string
	}{
		{"genuine", now, good, body, "True"},
		{"another body", now, good, body + " ", "False"},
		{"another time", old, good, body, "False"},
		{"old", old, alert.Sign(secret, old, []byte(body)), body, "False"},
		{"another secret", now, alert.Sign("x", now, []byte(body)), body, "False"},
		{"none", now, "", body, "False"},
	} {
		if got := genuine(secret, c.timestamp, c.signature, []byte(c.body)); got != (c.want == "True") {
			t.Errorf("%s: Go says %v", c.what, got)
		}
		program := block(t, page, "```python") + "\nimport sys\nprint(genuine(*sys.argv[1:4], sys.argv[4].encode()))"
		out, err := exec.CommandContext(t.Context(), "python3", "-c", program, secret, c.timestamp, c.signature, c.body).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != c.want {
			t.Errorf("%s: Python says %s, %v", c.what, out, err)
		}
	}
}

func TestThePageShowsWhatIsSent(t *testing.T) {
	t.Parallel()
	page := read(t, "alerting.md")
	shown := block(t, page, "```json")
	var e alert.Event
	var want, got map[string]any
	for _, into := range []any{&e, &want} {
		if err := json.Unmarshal([]byte(shown), into); err != nil {
			t.Fatal(err)
		}
	}
	body, err := e.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	for key := range got {
		if g, w := got[key], want[key]; key != "detail" && g != w {
			t.Errorf("%s is %v, the page says %v", key, g, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("sent are %v, the page shows %v", got, want)
	}
	for _, kind := range alert.Kinds() {
		if !strings.Contains(page, "\n| `"+kind+"` | ") {
			t.Errorf("%s isn't explained", kind)
		}
	}
	for line := range strings.Lines(page) {
		if name, ok := strings.CutPrefix(line, "| `"); ok && !strings.HasPrefix(name, "Pawl-") {
			if name, _, _ = strings.Cut(name, "`"); !slices.Contains(alert.Kinds(), name) {
				t.Errorf("%s doesn't exist", name)
			}
		}
	}
}
