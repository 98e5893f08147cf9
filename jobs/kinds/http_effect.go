package kinds

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"pawl/jobs"
)

const (
	onlyEffect = "request" // its name in the journal
	mostKept   = 32 << 10  // bytes of a body that the journal keeps
	mostText   = 8 << 10   // the same of one that isn't JSON: in JSON it may be six times as long
	mostDepth  = 50        // of lists and maps that the journal keeps as they are
)

// effect sends the request through the journal.
func (w httpWork) effect(ctx context.Context, run *jobs.Run, rec *recorder) error {
	asked := false
	c := jobs.EffectConfig{
		Key: onlyEffect, Only: true, Request: w.shown(run),
		OnUncertain: w.policy(), KeyLifetime: w.KeyLifetime, ValidFor: w.ValidFor,
		Send: func(ctx context.Context, key string) (any, error) {
			asked = true
			a, err := w.send(ctx, run, key, rec)
			return a, err
		},
	}
	if w.probing != nil {
		c.Probe = func(ctx context.Context, key string) (any, error) {
			asked = true
			return w.probe(ctx, run, key, rec)
		}
	}
	response, err := run.EffectOf(ctx, c)
	switch {
	case errors.Is(err, jobs.ErrDropped):
		return fmt.Errorf("%w: %w", jobs.ErrSkip, err)
	case errors.Is(err, jobs.ErrExpired) && !asked: // and would be at each retry
		return fmt.Errorf("%w: %w", jobs.ErrNoRetry, err)
	case err == nil && !asked:
		_, _ = fmt.Fprintf(rec, "not sent: it is on record as done. To send it once more: pawl job rerun %s %s --repeat-effects\nits answer was %s\n", run.Job, run.Period.Key, response)
	}
	return err
}

// policy is what is done when nobody knows.
func (w httpWork) policy() string {
	switch {
	case w.probing != nil:
		return jobs.UncertainProbe
	case w.OnTimeout == TimeoutUncertain || w.KeyLifetime == jobs.NoKeys:
		return jobs.UncertainAsk
	}
	return jobs.UncertainRetry
}

// shownRequest is what the journal has of a request: enough to refuse another one under its key, and to ask a receiver about.
type shownRequest struct {
	Method string `json:"method"`
	URL    string `json:"url"`
	Body   any    `json:"body,omitempty"`
	SHA256 string `json:"body_sha256,omitempty"` // of a body that is too long to keep
}

var passwordInURL = regexp.MustCompile(`://[^/?#]*@`)

// shown is the request as it is asked for: secrets stay as they were written, and so do the values that tell who sends it,
// since a retry asks for the same.
func (w httpWork) shown(run *jobs.Run) shownRequest {
	all := values(run)
	value := func(name string) string {
		if strings.HasPrefix(name, "run.") {
			return "{{" + name + "}}"
		}
		return all(name)
	}
	inURL := escaped(value)
	to := w.URL.Show(func(name string) string {
		if strings.HasPrefix(name, "run.") {
			return value(name)
		}
		return inURL(name)
	})
	s := shownRequest{Method: w.Method, URL: passwordInURL.ReplaceAllString(to, "://")}
	switch {
	case w.Body.JSON != nil:
		s.Body = replace(w.Body.JSON, func(t Text) string { return t.Show(value) })
	case w.Body.Text != nil:
		s.Body = w.Body.Text.Show(value)
	}
	if text, err := json.Marshal(s.Body); err == nil && len(text) > mostKept {
		sum := sha256.Sum256(text)
		s.Body, s.SHA256 = nil, hex.EncodeToString(sum[:])
	}
	return s
}

// answered is what the journal has of an answer.
type answered struct {
	Status int  `json:"status"`
	Body   any  `json:"body,omitempty"`
	Cut    bool `json:"cut,omitempty"` // the run's output has all of it
}

// answer is an answer as the journal keeps it: JSON as it is, anything else as text.
func answer(status int, body []byte) *answered {
	a := &answered{Status: status}
	if v, err := decode(body); err == nil && len(body) <= mostKept && depth(v) <= mostDepth {
		a.Body = json.RawMessage(body)
		return a
	}
	if a.Cut = len(body) > mostText; a.Cut {
		body = body[:mostText]
	}
	if len(body) > 0 {
		a.Body = strings.ToValidUTF8(string(body), "\uFFFD")
	}
	return a
}

// depth is how many lists and maps of what decode has given are within one another.
func depth(v any) int {
	most := 0
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			most = max(most, depth(item))
		}
	case map[string]any:
		for _, item := range v {
			most = max(most, depth(item))
		}
	default:
		return 0
	}
	return most + 1
}
