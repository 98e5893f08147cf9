package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Effect calls a system that can't check a token, so that a successor can go on where this run may end. The intent is
// committed, guarded, before send is called, and the outcome after it. The idempotency key is derived from job, period and
// key, so that every run and rerun of the period has the same one; outcomes carry over, and an effect that is done gives its
// response without a call. It is [Run.EffectOf] with the default policy: sent again with the same key while nobody knows what has
// become of it, for 24 hours.
//
// What it can't do: a run that stands still between the last look at its lease and the call makes the call all the same. The
// receiver, which must keep keys, then sees the same key twice.
func (r *Run) Effect(ctx context.Context, key string, request any, send EffectFunc) (response json.RawMessage, err error) {
	return r.EffectOf(ctx, EffectConfig{Key: key, Request: request, Send: send})
}

// EffectOf is [Run.Effect] with the policies of c. It returns an [*EffectError], or that the lease is lost: then a successor
// finds out. It may be called for several keys at a time, not for one key twice.
func (r *Run) EffectOf(ctx context.Context, c EffectConfig) (response json.RawMessage, err error) {
	if c.Only && r.Shard.Key != "" {
		c.Key = r.Shard.Key
	}
	c, request, err := c.withDefaults(r.Job)
	if err != nil {
		return nil, err
	}
	e, do, left, err := r.intend(ctx, c, request)
	if err != nil {
		return nil, fmt.Errorf("jobs: intent of effect %q: %w", c.Key, err)
	}
	if do == stepFresh || do == stepUnsent || do == stepAgain || do == stepProbe {
		own, cancel := context.WithTimeoutCause(ctx, max(left, time.Millisecond), ErrExpired)
		defer cancel()
		ctx = own
	}
	m := &making{run: r, c: c, e: e}
	switch do {
	case stepFresh, stepUnsent, stepAgain:
		return m.send(ctx)
	case stepProbe:
		return m.probe(ctx, m.send)
	case stepInquire:
		return m.probe(ctx, m.tooLate)
	case stepPerson:
		return nil, m.fail(true, errors.New(cmp.Or(e.reason, tooLateToSend)))
	case stepDropped:
		return nil, m.fail(false, fmt.Errorf("%w: %s", ErrDropped, e.reason))
	case stepChanged:
		return nil, m.fail(false, fmt.Errorf("%w: %s%s", ErrOtherRequest, changes(e.request, request), m.instead()))
	case stepExpired:
		err := fmt.Errorf("%w: it was valid until %s", ErrExpired, c.validUntil(e).UTC().Format(time.RFC3339))
		if e.state == EffectIntended { // and nothing was sent
			return nil, m.ended(ctx, EffectFailed, err)
		}
		return nil, m.fail(false, err)
	case stepAnswer:
	}
	return json.RawMessage(cmp.Or(e.response, "null")), nil
}

// making is one call of EffectOf.
type making struct {
	run    *Run
	c      EffectConfig
	e      entry
	probed bool
}

func (m *making) fail(ask bool, err error) error {
	if !ask && errors.Is(err, ErrUncertain) { // who wrote Send meant the effect, not the period
		err = errors.New(err.Error())
	}
	state := m.e.state
	if state == "" {
		state = "not sent"
	}
	return &EffectError{Job: m.run.Job, Period: m.run.Period.Key, Key: m.c.Key, ID: m.e.id, State: state, Ask: ask, Err: err}
}

// send calls the receiver, if the lease is surely still ours.
func (m *making) send(ctx context.Context) (json.RawMessage, error) {
	if err := m.run.alive(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // the probe took its time
		m.run.unsent(ctx, &m.e, context.Cause(ctx))
		return nil, m.fail(false, context.Cause(ctx))
	}
	response, err := m.c.Send(ctx, m.e.key)
	switch {
	case err == nil:
		return m.done(ctx, response)
	case errors.Is(err, ErrFailed):
		return nil, m.ended(ctx, EffectFailed, err)
	case errors.Is(err, ErrNotSent):
		m.run.unsent(ctx, &m.e, err)
		return nil, m.fail(false, err)
	case errors.Is(err, ErrAgain):
		return nil, m.ended(ctx, EffectIntended, err)
	}
	if err := m.run.outcome(ctx, &m.e, EffectUncertain, nil, err); err != nil {
		return nil, err
	}
	if m.c.OnUncertain == UncertainProbe && !m.probed && ctx.Err() == nil {
		return m.probe(ctx, func(context.Context) (json.RawMessage, error) {
			return nil, m.fail(false, fmt.Errorf("the receiver hasn't got it yet: %w", err)) // it may be on its way: the next run asks again
		})
	}
	return nil, m.fail(m.c.OnUncertain == UncertainAsk, err)
}

// probe asks the receiver what has become of the key, and goes on with absent if that hasn't got it.
func (m *making) probe(ctx context.Context, absent func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	m.probed = true
	response, err := m.c.Probe(ctx, m.e.key)
	switch {
	case err == nil:
		return m.done(ctx, response)
	case errors.Is(err, ErrAbsent):
		return absent(ctx)
	case errors.Is(err, ErrFailed):
		return nil, m.ended(ctx, EffectFailed, err)
	}
	if m.e.state != EffectUncertain {
		if err := m.run.outcome(ctx, &m.e, EffectUncertain, nil, err); err != nil {
			return nil, err
		}
	}
	return nil, m.fail(false, fmt.Errorf("the receiver doesn't say: %w", err))
}

// tooLate is for what the receiver hasn't got when it may not be sent any more under its key.
func (m *making) tooLate(ctx context.Context) (json.RawMessage, error) {
	return nil, m.ended(ctx, EffectFailed, fmt.Errorf("%w, and the receiver hasn't got it", ErrExpired))
}

func (m *making) done(ctx context.Context, response any) (json.RawMessage, error) {
	if err := m.run.outcome(ctx, &m.e, EffectDone, response, nil); err != nil {
		return nil, err
	}
	return json.RawMessage(m.e.response), nil
}

// instead is what may be done about a request that has changed.
func (m *making) instead() string {
	if m.e.state == EffectDone {
		return fmt.Sprintf("; it is done: change it back and retry; or, if it must be done once more as it is now, pawl job cancel %s %s and pawl job rerun --repeat-effects", m.run.Job, m.run.Period.Key)
	}
	return fmt.Sprintf("; change it back, or say what has become of the first with: pawl effects decide %d", m.e.id)
}

func (m *making) ended(ctx context.Context, state string, cause error) error {
	if err := m.run.outcome(ctx, &m.e, state, nil, cause); err != nil {
		return err
	}
	return m.fail(false, cause)
}

func shortened(s string) string {
	if len(s) > 200 {
		return storable(s[:200]) + "…"
	}
	return s
}
