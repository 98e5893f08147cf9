package jobs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// What a function that makes an effect may say of it. Any other error means that nobody can tell: also "in progress", a
// time-out, and an answer that can't be read.
var (
	// ErrFailed says that the receiver has definitely done nothing, and would answer the same to the same key again. The
	// next try of the effect has a key of its own.
	ErrFailed = errors.New("jobs: effect has failed")
	// ErrNotSent says that nothing has left this process: the next call has the same key. As long as nothing ever has, its
	// request may be changed.
	ErrNotSent = errors.New("jobs: effect was not sent")
	// ErrAgain says that the receiver has answered, but neither that it has happened nor that it hasn't, and that the next call
	// may have the same key, whatever the policy: later, busy, an error of its own. It isn't for an answer that never came.
	ErrAgain = errors.New("jobs: effect may be sent again")
	// ErrAbsent is what a probe answers when the receiver says that it has never got the key.
	ErrAbsent = errors.New("jobs: receiver has not got the effect")
	// ErrDropped is returned for an effect that a person has decided to give up: it is not called again.
	ErrDropped = errors.New("jobs: effect was dropped by a person")
	// ErrExpired is returned when it is too late to send an effect, and the cause of the call's context when that comes to be.
	ErrExpired = errors.New("jobs: too late to send the effect")
	// ErrOtherRequest is returned when an effect's request is another one than was recorded under its key. It is an [ErrNoRetry].
	ErrOtherRequest = errors.New("jobs: request has changed under an old key")
)

// What becomes of an effect of which nobody knows whether it has happened.
const (
	UncertainProbe = "probe" // the receiver is asked; what it hasn't got is sent again
	UncertainRetry = "retry" // it is sent again with the same key
	UncertainAsk   = "ask"   // a person decides, see DecideEffect
)

const (
	// NoKeys as KeyLifetime means that the receiver keeps no idempotency keys: what may have been sent is never sent again.
	NoKeys time.Duration = -1

	keyLifetime = 24 * time.Hour
	mostRequest = 64 << 10 // bytes of a request and of a response
)

// EffectFunc calls the receiver, or asks it what has become of a key.
type EffectFunc func(ctx context.Context, idempotencyKey string) (response any, err error)

// EffectConfig is an effect. Key and Send are required.
type EffectConfig struct {
	Key         string        // within the period: 1 to 128 printable ASCII characters without spaces
	Only        bool          // it is the only effect of the period, or of a shard, whose key is Key then: its idempotency key is the run's, see Run.EffectKey
	Request     any           // what is asked for, without secrets: at most 64 KiB as JSON; under one key always the same
	Send        EffectFunc    // nil error: it has happened; else see ErrFailed and ErrNotSent
	Probe       EffectFunc    // asks the receiver by key; nil error: it has happened; ErrAbsent, ErrFailed: it hasn't; else unknown
	OnUncertain string        // default: probe if there is a Probe, else retry if the receiver keeps keys, else ask
	KeyLifetime time.Duration // for which the receiver surely remembers a key; default 24h; NoKeys
	ValidUntil  time.Time     // after it nothing is sent, by the database's clock; default no limit
	ValidFor    time.Duration // the same, from the first intent on; default no limit
}

var effectName = regexp.MustCompile(`^[!-~]{1,128}$`)

// withDefaults returns the effect as it is made and its request as JSON, or what can't be used.
func (c EffectConfig) withDefaults(job string) (EffectConfig, string, error) {
	bad := func(field string, value any, fix string) (EffectConfig, string, error) {
		return c, "", &ConfigError{job, field, value, fix}
	}
	c.KeyLifetime = cmp.Or(c.KeyLifetime, keyLifetime)
	if c.OnUncertain == "" {
		c.OnUncertain = c.policy()
	}
	request, err := compact(c.Request)
	switch {
	case !effectName.MatchString(c.Key):
		return bad("Effect.Key", c.Key, "use 1 to 128 printable ASCII characters without spaces")
	case c.Send == nil:
		return bad("Effect.Send", nil, "set the function that calls the receiver")
	case !slices.Contains([]string{UncertainProbe, UncertainRetry, UncertainAsk}, c.OnUncertain):
		return bad("Effect.OnUncertain", c.OnUncertain, "use probe, retry or ask")
	case c.OnUncertain == UncertainProbe && c.Probe == nil:
		return bad("Effect.Probe", nil, "set it, or let OnUncertain be retry or ask")
	case c.OnUncertain == UncertainRetry && c.KeyLifetime == NoKeys:
		return bad("Effect.OnUncertain", c.OnUncertain, "use probe or ask: a receiver that keeps no keys would do it twice")
	case c.KeyLifetime < 0 && c.KeyLifetime != NoKeys:
		return bad("Effect.KeyLifetime", c.KeyLifetime, "use a positive duration, or NoKeys")
	case c.ValidFor < 0 || c.ValidFor > 0 && !c.ValidUntil.IsZero():
		return bad("Effect.ValidFor", c.ValidFor, "use a positive duration, or ValidUntil")
	case err != nil:
		return c, "", fmt.Errorf("jobs: request of effect %q: %w", c.Key, err)
	case len(request) > mostRequest:
		return bad("Effect.Request", fmt.Sprint(len(request), " bytes"), "keep it within 64 KiB: a reference will do")
	}
	return c, storable(string(request)), nil
}

// compact is a value as JSON that people can read: & and < as they are.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// keyOf is the idempotency key of a try.
func (c EffectConfig) keyOf(sender, shard string, e entry) string {
	switch {
	case !c.Only:
		return effectKey(sender, e.period, e.revision, e.try-1) + "/" + c.Key
	case shard != "":
		return effectKey(sender, e.period+"#"+shard, e.revision, e.try-1)
	}
	return effectKey(sender, e.period, e.revision, e.try-1)
}

// until is the end of what is first meant now; nil: there is none.
func (c EffectConfig) until(now time.Time) *time.Time {
	t := c.ValidUntil
	if c.ValidFor > 0 {
		t = now.Add(c.ValidFor)
	}
	if t.IsZero() {
		return nil
	}
	return &t
}

func (c EffectConfig) policy() string {
	switch {
	case c.Probe != nil:
		return UncertainProbe
	case c.KeyLifetime == NoKeys:
		return UncertainAsk
	}
	return UncertainRetry
}

// EffectError says what has become of an effect. It is the error that its function gave; an [ErrFailed], [ErrDropped],
// [ErrExpired] or [ErrOtherRequest] where it is one of those; and an [ErrUncertain] when a person has to decide: a run that returns it
// leaves the period dead.
type EffectError struct {
	Job, Period, Key string
	ID               int64  // by which a person decides
	State            string // intended, done, failed, uncertain, dropped
	Ask              bool   // a person has to decide
	Err              error  // required
}

// Error implements error.
func (e *EffectError) Error() string {
	s := fmt.Sprintf("jobs: effect %d, %s of %s %s, is %s: %v", e.ID, e.Key, e.Job, e.Period, e.State, e.Err)
	if e.Ask {
		s += fmt.Sprintf("; find out whether it has happened and say so with: pawl effects decide %d; then: pawl job retry %s %s", e.ID, e.Job, e.Period)
	}
	return s
}

// Unwrap returns the cause.
func (e *EffectError) Unwrap() error { return e.Err }

// Is says whether a person has to decide.
func (e *EffectError) Is(target error) bool {
	return target == ErrUncertain && e.Ask || target == ErrNoRetry && errors.Is(e.Err, ErrOtherRequest)
}
