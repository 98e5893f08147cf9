package lockrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"pawl/fence"
	"pawl/internal/gather"
)

// Request says what to acquire, for callers that need more than [Repo.Acquire].
type Request struct {
	Lock      string
	Holder    string        // default Config.Holder
	Key       string        // whose claim it is, beside the holder: the API key's id; may be empty
	Grant     uuid.UUID     // asked again with it, the same grant is answered while it lives; default a new one
	TTL       time.Duration // 100 ms to 24 h; default Config.TTL
	Reenter   bool          // also take the lock from a live lease with the same holder and key; the token grows
	RequestID string        // the request that asks, for the log and the tenure; may be empty
}

// Acquire tries once to take the lock for ttl (0: Config.TTL; else 100 ms to
// 24 h), and never waits for it. If somebody holds it, this process included,
// it answers a [*HeldError], which is [ErrHeld].
func (r *Repo) Acquire(ctx context.Context, lock string, ttl time.Duration) (Lease, error) {
	return r.AcquireRequest(ctx, Request{Lock: lock, TTL: ttl})
}

// AcquireRequest is [Repo.Acquire] with all that can be said. Asked again with
// a grant id whose lease has ended, it answers [ErrEnded]. When it ends without
// an answer, the grant is released by its id in the background, unless Grant
// was given: then the caller may ask again.
func (r *Repo) AcquireRequest(ctx context.Context, q Request) (Lease, error) {
	return r.acquireSince(ctx, q, time.Now())
}

// acquireSince is AcquireRequest for a caller who has wanted the lock since
// then.
func (r *Repo) acquireSince(ctx context.Context, q Request, since time.Time) (Lease, error) {
	ours := q.Grant == uuid.Nil
	if ours {
		q.Grant = uuid.New()
	}
	q.Holder, q.TTL = cmp.Or(q.Holder, r.cfg.Holder), cmp.Or(q.TTL, r.cfg.TTL)
	if err := cmp.Or(checkName(q.Lock), checkTTL(q.TTL)); err != nil {
		return Lease{}, fmt.Errorf("lockrepo: acquire: %w", err)
	}
	l, err := r.acquire(ctx, q)
	switch {
	case err == nil:
		r.m.wait.Observe(time.Since(since).Seconds())
		r.cfg.Logger.DebugContext(ctx, "lock acquired", "token", l.Token, "grant_id", l.Grant, "holder", l.Holder, "key", q.Key, "request_id", q.RequestID)
		return l, nil
	case ours && unanswered(err):
		r.beside(func(ctx context.Context) { r.undo(ctx, q) })
	}
	if errors.Is(err, ErrHeld) || errors.Is(err, ErrEnded) {
		return Lease{}, err
	}
	return Lease{}, fmt.Errorf("lockrepo: acquire %q: %w", q.Lock, err)
}

// maxTries bounds how often one acquire asks: again for a birth that another
// has won, or for a clock row that had to be adopted.
const maxTries = 4

func (r *Repo) acquire(ctx context.Context, q Request) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, q.TTL) // a later answer would be worth nothing
	defer cancel()
	var a grant
	for range maxTries {
		l, err := r.acquireOnce(ctx, q, &a)
		if err != nil {
			return Lease{}, err
		}
		switch a.outcome {
		case "granted":
			return l, nil
		case "held":
			return Lease{}, a.held(q.Lock)
		case "ended":
			return Lease{}, ErrEnded
		case "adopt":
			if err := r.Adopt(ctx, false); err != nil {
				return Lease{}, err
			}
		}
	}
	if a.outcome == "adopt" {
		return Lease{}, errors.New("the database changes servers too often to adopt one")
	}
	a.holder = "" // free, but some transaction has the row
	return Lease{}, a.held(q.Lock)
}

func (a *grant) held(lock string) error {
	e := &HeldError{Lock: lock, Holder: a.holder, Token: a.token}
	if a.expires != nil && a.holder != "" {
		e.ExpiresAt = a.expires.UTC()
	}
	return e
}

func (r *Repo) acquireOnce(ctx context.Context, q Request, a *grant) (l Lease, err error) {
	sent := Now()
	if *a, err = gathered(ctx, r.acquires, r.acquireMany, q); err == nil {
		sent = a.sent
	}
	r.m.acquired(a.outcome, err, sent)
	if err != nil || a.outcome != "granted" {
		return Lease{}, err
	}
	l = r.Granted(fence.Token{Lock: q.Lock, Seq: a.token}, q.Grant, q.Holder, q.TTL, sent)
	l.AcquiredAt, l.ExpiresAt = a.acquired.UTC(), a.expires.UTC()
	return l, nil
}

// gathered sends q with those that wait, or by itself when the repo is closed: what is held can still be given back.
func gathered[Q, R any](ctx context.Context, g *gather.Gatherer[Q, R], exec func(context.Context, []Q) ([]R, error), q Q) (r R, err error) {
	r, err = g.Do(ctx, q)
	if !errors.Is(err, gather.ErrClosed) {
		return r, err
	}
	all, err := exec(ctx, []Q{q})
	if err != nil {
		return r, err
	}
	return all[0], nil
}

// unanswered reports whether the statement may have been carried out all the
// same: sent, and not refused by the server.
func unanswered(err error) bool {
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, ErrHeld), errors.Is(err, ErrEnded), errors.As(err, new(unsentError)), pgconn.SafeToRetry(err):
		return false
	case errors.As(err, &pg):
		return pg.Code[:2] == "57" || pg.Code[:2] == "08"
	}
	return true
}
