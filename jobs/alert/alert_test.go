package alert_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pawl/jobs/alert"
)

func event() alert.Event {
	return alert.Event{
		ID: "8b7c2c04-6c0e-4b8e-9b57-0c8f8a3c6f10", Kind: alert.Dead, At: time.Date(2026, 9, 16, 2, 15, 0, 0, time.UTC), App: "ledger",
		Job: "settle", Owner: "payments", Period: "2026-09-16", Revision: 1, Lock: "job:settle", Token: 1795969942676573,
		Detail: map[string]any{"reason": "failed", "attempts": 6},
	}
}

// heard is one request that a server has had.
type heard struct {
	path   string
	header http.Header
	body   []byte
}

func server(t *testing.T, answer http.HandlerFunc) (url string, got chan heard) {
	t.Helper()
	got = make(chan heard, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- heard{r.URL.Path, r.Header, body}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func TestAnEventIsSentAsSignedJSON(t *testing.T) {
	t.Parallel()
	url, got := server(t, ok)
	c := alert.Channel{Name: "ops", URL: url + "/hook", Secret: "s3cret"}
	if err := (alert.Sender{}).Send(t.Context(), c, event()); err != nil {
		t.Fatal(err)
	}
	h := <-got
	var body map[string]any
	if err := json.Unmarshal(h.body, &body); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"id": event().ID, "event": "dead", "at": "2026-09-16T02:15:00Z", "app": "ledger", "job": "settle", "owner": "payments",
		"period": "2026-09-16", "revision": 1.0, "lock": "job:settle", "token": 1795969942676573.0,
		"text": "settle 2026-09-16 is dead: no run of it is left (failed). Owner: payments.",
	} {
		if body[key] != want {
			t.Errorf("%s = %v, want %v", key, body[key], want)
		}
	}
	if _, there := body["run"]; there {
		t.Error("what the event isn't about is in the body")
	}
	stamp := h.header.Get("Pawl-Timestamp")
	if want := alert.Sign("s3cret", stamp, h.body); h.header.Get("Pawl-Signature") != want {
		t.Errorf("signature %q, want %q", h.header.Get("Pawl-Signature"), want)
	}
	if h.header.Get("Pawl-Event-Id") != event().ID || h.header.Get("Pawl-Event") != "dead" || h.header.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", h.header)
	}
}

// The vector is from Python: hmac.new(b"key", b'1795969942.{"a":1}', "sha256").hexdigest().
func TestTheSignatureIsHMACSHA256OfTimestampAndBody(t *testing.T) {
	t.Parallel()
	const want = "v1=580529dc46b0d8550b7c11131fd678deb98c623c60f201fd679a96b3060009f5"
	if got := alert.Sign("key", "1795969942", []byte(`{"a":1}`)); got != want {
		t.Errorf("Sign = %s, want %s", got, want)
	}
}

func TestWithoutASecretNothingIsSigned(t *testing.T) {
	t.Parallel()
	url, got := server(t, ok)
	if err := (alert.Sender{}).Send(t.Context(), alert.Channel{Name: "ops", URL: url}, event()); err != nil {
		t.Fatal(err)
	}
	if h := <-got; h.header.Get("Pawl-Signature") != "" {
		t.Errorf("signed: %v", h.header)
	}
}

func TestARedirectToAnotherHostIsNotFollowed(t *testing.T) {
	t.Parallel()
	other, reached := server(t, ok)
	url, _ := server(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, http.StatusTemporaryRedirect) })
	err := alert.Sender{}.Send(t.Context(), alert.Channel{Name: "ops", URL: url}, event())
	if err == nil || !strings.Contains(err.Error(), "another host") {
		t.Errorf("Send = %v", err)
	}
	if len(reached) > 0 {
		t.Error("the other host was asked")
	}
}

func TestARedirectOnTheSameHostKeepsTheBodyOrFails(t *testing.T) {
	t.Parallel()
	for status, fine := range map[int]bool{302: false, 303: false, 307: true, 308: true} {
		url, got := server(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/there" {
				http.Redirect(w, r, "/there", status)
			}
		})
		err := alert.Sender{}.Send(t.Context(), alert.Channel{Name: "ops", URL: url, Secret: "x"}, event())
		if (err == nil) != fine {
			t.Errorf("%d: Send = %v", status, err)
		}
		first := <-got
		if fine {
			if then := <-got; string(then.body) != string(first.body) || then.header.Get("Pawl-Signature") == "" {
				t.Errorf("%d: the body or the signature is lost: %v", status, then)
			}
		}
	}
}

func TestAnythingButSuccessIsAnErrorWithItsRetryAfter(t *testing.T) {
	t.Parallel()
	for after, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "999999": time.Hour, "-1": 0, "soon": 0} {
		url, _ := server(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		err := alert.Sender{}.Send(t.Context(), alert.Channel{Name: "ops", URL: url}, event())
		var status *alert.StatusError
		if !errors.As(err, &status) || status.Status != 503 || status.RetryAfter != want {
			t.Errorf("Retry-After %q: Send = %v, %+v", after, err, status)
		}
	}
}

func TestAnEndlessAnswerIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	var written int
	ended := make(chan struct{})
	url, _ := server(t, func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		for written < 64<<20 {
			n, err := w.Write(make([]byte, 64<<10))
			if written += n; err != nil {
				return
			}
		}
	})
	if err := (alert.Sender{}).Send(t.Context(), alert.Channel{Name: "ops", URL: url}, event()); err != nil {
		t.Fatal(err)
	}
	if <-ended; written >= 64<<20 {
		t.Errorf("%d bytes were taken", written)
	}
}

func TestErrorsAndPrintedChannelsTellNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "T0PSECRET"
	gone, stop := context.WithCancel(t.Context())
	stop()
	var said strings.Builder
	for _, url := range []string{"http://127.0.0.1:1/" + secret, "http://127.0.0.1:1/%zz" + secret, "http://user:" + secret + "@127.0.0.1:1/?k=" + secret} {
		c := alert.Channel{Name: "ops", URL: url, Secret: secret}
		fmt.Fprintln(&said, alert.Sender{}.Send(t.Context(), c, event()), alert.Sender{}.Send(gone, c, event()), c.Check())
		fmt.Fprintf(&said, "%v %+v %#v %s\n", c, c, c, c)
		slog.New(slog.NewJSONHandler(&said, nil)).Info("x", "channel", c)
	}
	if strings.Contains(said.String(), secret) {
		t.Error(said.String())
	}
}

func TestAChannelThatCantBeUsedSaysWhichFieldAndTheFix(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]alert.Channel{
		`channel "Ops": Name "Ops": use a lower-case`:          {Name: "Ops", URL: "https://x.example/"},
		`channel "ops": URL isn't absolute: give one like`:     {Name: "ops", URL: "x.example/hook"},
		`channel "ops": URL has the scheme "ftp": use https`:   {Name: "ops", URL: "ftp://x.example/"},
		`channel "ops": On "death": use some of [dead missed `: {Name: "ops", URL: "https://x.example/", On: []string{"death"}},
	} {
		var field *alert.FieldError
		if err := c.Check(); !errors.As(err, &field) || !strings.Contains(err.Error(), want) {
			t.Errorf("Check = %v, want %s", err, want)
		}
	}
	if err := (alert.Channel{Name: "ops", URL: "https://x.example/"}).Check(); err != nil {
		t.Error(err)
	}
}

func TestEveryKindHasASentence(t *testing.T) {
	t.Parallel()
	for _, kind := range alert.Kinds() {
		e := event()
		e.Kind = kind
		s := e.Text()
		if strings.Contains(s, ": "+kind+".") || strings.Contains(s, "%!") || !strings.HasSuffix(s, ".") {
			t.Errorf("%s: %s", kind, s)
		}
	}
}
