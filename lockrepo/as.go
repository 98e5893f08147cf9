package lockrepo

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"pawl/fence"
)

// As says whose lease to renew or release, by name instead of by grant.
type As struct {
	Lock    string
	Holder  string
	Key     string        // as it was acquired with: the same holder under another key is another caller
	Token   int64         // 0: whichever is current; else it must be
	TTL     time.Duration // of a renewal, 100 ms to 24 h; default Config.TTL
	MaxHold time.Duration // a renewal never lasts longer than until then, counted from the acquisition; 0: no limit

	RequestID string // the request that asks, for the log; may be empty
}

func (a *As) check() error {
	switch {
	case !isText(a.Holder) || !isText(a.Key):
		return badInput("holder %q or key %q is not UTF-8 text: remove the bytes that are not", a.Holder, a.Key)
	case a.Token < 0:
		return badInput("token %d is negative: give the lease's, or 0 for whichever is current", a.Token)
	case a.MaxHold < 0:
		return badInput("MaxHold is %v: give one above 0, or 0 for no limit", a.MaxHold)
	}
	return checkName(a.Lock)
}

// $1 name, $2 holder, $3 key, $4 token, $5 ttl, $6 max hold (µs, null: no limit).
const renewAsSQL = `
select a.outcome, coalesce((a.lease).token, 0), (a.lease).acquired_at, (a.lease).renewed_at, (a.lease).expires_at,
       coalesce((a.lease).beats, 0), coalesce((a.lease).longest_gap, '0'), (a.lease).expires_at - (a.lease).renewed_at, clock_timestamp()
  from pawl.renew_as($1::text, $2::text, $3::text, $4::bigint, $5::bigint * interval '1 us', $6::bigint * interval '1 us') a`

// RenewAs extends the lease that a.Holder has under a.Key by a.TTL from now,
// but not beyond a.MaxHold: the answer's TTL and ExpiresAt are what was given.
// It never revives one and never changes the token. [ErrNotFound]: no such
// lock, or a stranger asks for one that was released. [ErrNotHeld]: the lease
// has expired, was released by this its last holder, is another's now while
// the caller once had it, or was acquired a.MaxHold ago. [ErrMismatch]: it is
// live, another's, and never was the caller's. [ErrPrecondition]: it is the
// caller's under another token. It waits for the lock's row while another
// statement has it, guarded transactions apart.
func (r *Repo) RenewAs(ctx context.Context, a As) (Info, error) {
	a.TTL = cmp.Or(a.TTL, r.cfg.TTL)
	if err := cmp.Or(a.check(), checkTTL(a.TTL)); err != nil {
		return Info{}, fmt.Errorf("lockrepo: renew: %w", err)
	}
	var most *int64
	if us := a.MaxHold.Microseconds(); a.MaxHold > 0 {
		most = &us
	}
	i := Info{Lock: a.Lock, State: Held, Holder: a.Holder, Key: a.Key}
	var outcome string
	var ttl *time.Duration
	err := r.alone(ctx, query{
		renewAsSQL,
		[]any{a.Lock, a.Holder, a.Key, a.Token, a.TTL.Microseconds(), most},
		single(&outcome, &i.Token, &i.AcquiredAt, &i.RenewedAt, &i.ExpiresAt, &i.Beats, (*time.Duration)(&i.LongestGap), &ttl, &i.ReadAt),
	}, &outcome)
	if err == nil {
		err = refusedAs(outcome)
	}
	if err != nil {
		return Info{}, fmt.Errorf("lockrepo: renew %q: %w", a.Lock, err)
	}
	if ttl != nil {
		i.TTL = Seconds(*ttl)
	}
	r.cfg.Logger.DebugContext(ctx, "lock renewed", "lock", a.Lock, "token", i.Token, "holder", a.Holder, "key", a.Key, "request_id", a.RequestID)
	return i.utc(), nil
}

// $1 name, $2 holder, $3 key, $4 token.
const releaseAsSQL = `
select a.outcome, coalesce(a.token, 0), coalesce(a.held, 0) from pawl.release_as($1::text, $2::text, $3::text, $4::bigint) a`

// ReleaseAs ends the lease that a.Holder has under a.Key, and wakes who waits
// for the lock. [ErrNotFound]: there is no live lease, so that asking twice
// does no harm. [ErrMismatch]: it is another's. [ErrPrecondition]: it is the
// caller's under another token.
func (r *Repo) ReleaseAs(ctx context.Context, a As) error {
	if err := a.check(); err != nil {
		return fmt.Errorf("lockrepo: release: %w", err)
	}
	var outcome string
	var token int64
	var held float64
	err := r.alone(ctx, query{releaseAsSQL, []any{a.Lock, a.Holder, a.Key, a.Token}, single(&outcome, &token, &held)}, &outcome)
	if err == nil {
		err = refusedAs(outcome)
	}
	if err != nil {
		return fmt.Errorf("lockrepo: release %q: %w", a.Lock, err)
	}
	r.m.ended("released", time.Duration(held*float64(time.Second)))
	r.cfg.Logger.DebugContext(ctx, "lock released", "lock", a.Lock, "token", token, "holder", a.Holder, "key", a.Key, "request_id", a.RequestID)
	return nil
}

func refusedAs(outcome string) error {
	switch outcome {
	case "renewed", "released":
		return nil
	case "lost":
		return ErrNotHeld
	case "another":
		return ErrMismatch
	case "other_token":
		return ErrPrecondition
	}
	return ErrNotFound // absent, free, expired; released: not the last holder
}

const checkTargetSQL = `select current, last_token from pawl.check($1::text, $2::bigint, $3::text)`

// CheckTarget reports whether target's mark lets tok write now, and the mark:
// the highest token that the target has seen, nil if it was never written. A
// mark of another lock lets nobody else's tokens pass. It is advice: the answer
// is old when it arrives.
func (r *Repo) CheckTarget(ctx context.Context, tok fence.Token, target string) (current bool, last *int64, err error) {
	if err := cmp.Or(checkName(tok.Lock), checkTarget(target)); err != nil {
		return false, nil, fmt.Errorf("lockrepo: check: %w", err)
	}
	err = r.ask(ctx, query{checkTargetSQL, []any{tok.Lock, tok.Seq, target}, single(&current, &last)})
	if err != nil {
		return false, nil, fmt.Errorf("lockrepo: check target %q: %w", target, err)
	}
	return current, last, nil
}

func checkTarget(target string) error {
	if target == "" || len(target) > maxName || !isText(target) {
		return badInput("target %.40q is empty, longer than %d bytes or not UTF-8 text: give a name such as account:42", target, maxName)
	}
	return nil
}
