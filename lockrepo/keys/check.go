package keys

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	scheme  = "pawl_"
	memory  = time.Second // how long a right key, or that there is none, is remembered
	mostRem = 1000        // keys remembered at a time
	longest = 200         // bytes of a bearer that are looked at
)

// remembered is a right key, until then.
type remembered struct {
	key   Key
	until time.Time
}

// $1 id. state is empty where the key may be used, if the secret is right.
const (
	checkSQL = `
select ` + columns + `, secret,
       case when revoked_at is not null then 'revoked' when expires_at <= clock_timestamp() then 'expired' else '' end,
       coalesce(last_used_at < clock_timestamp() - interval '1 min', true)
  from pawl.keys where id = $1::text`
	usedSQL = `update pawl.keys set last_used_at = clock_timestamp() where id = $1::text`
)

// Check returns the key of a bearer, or [ErrUnknownKey]; any other error means
// that the database didn't answer. Compared is the secret's digest, in constant
// time. A right key is remembered for a second, so one that is revoked or
// expires works for at most a second longer; a wrong one never is.
func (s *Store) Check(ctx context.Context, bearer string) (Key, error) {
	asked := s.now()
	digest := sha256.Sum256([]byte(bearer))
	if k, ok := s.recall(digest, asked); ok {
		return k, nil
	}
	id, secret, ok := parse(bearer)
	if !ok {
		return Key{}, unknown("it doesn't have the form of one")
	}
	k, used, err := s.look(ctx, id, secret)
	if err != nil {
		return Key{}, err
	}
	if used {
		_, _ = s.pool.Exec(ctx, usedSQL, exec, k.ID) // a detail: the key is right all the same
	}
	s.remember(digest, remembered{k, asked.Add(memory)}, asked)
	return k, nil
}

// look reports also whether the use of the key is worth noting.
func (s *Store) look(ctx context.Context, id, secret string) (k Key, used bool, err error) {
	var want []byte
	var state string
	err = s.pool.QueryRow(ctx, checkSQL, exec, id).Scan(append(k.dest(), &want, &state, &used)...)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return Key{}, false, fmt.Errorf("keys: check: %w", err)
	}
	got := sha256.Sum256([]byte(secret))
	right := subtle.ConstantTimeCompare(got[:], want) == 1
	switch {
	case err != nil:
		return Key{}, false, unknown("there is no key " + id)
	case !right:
		return Key{}, false, unknown("wrong secret for key " + id)
	case state != "":
		return Key{}, false, unknown("key " + id + " is " + state)
	}
	k.utc()
	return k, used, nil
}

func unknown(reason string) error { return fmt.Errorf("%w: %s", ErrUnknownKey, reason) }

func parse(bearer string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(bearer, scheme)
	if !ok || len(bearer) > longest {
		return "", "", false
	}
	id, secret, ok = strings.Cut(rest, "_")
	bad := func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }
	return id, secret, ok && id != "" && secret != "" && !strings.ContainsFunc(id, bad)
}

func (s *Store) recall(digest [sha256.Size]byte, now time.Time) (Key, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.known[digest]
	return r.key, ok && now.Before(r.until)
}

func (s *Store) remember(digest [sha256.Size]byte, r remembered, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= mostRem {
		for d, old := range s.known {
			if !now.Before(old.until) {
				delete(s.known, d)
			}
		}
	}
	if len(s.known) < mostRem {
		s.known[digest] = r
	}
}

func (s *Store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.known)
}

const anySQL = `select exists (select from pawl.keys)`

// Any reports whether a key was ever made, revoked and expired ones included:
// what once asked for keys doesn't stop asking. That there is none is
// remembered for a second.
func (s *Store) Any(ctx context.Context) (bool, error) {
	if s.any.Load() {
		return true, nil
	}
	s.none.Lock()
	defer s.none.Unlock() // one asks for all
	asked := s.now()
	if !s.none.at.IsZero() && asked.Sub(s.none.at) < memory {
		return false, nil
	}
	var found bool
	if err := s.pool.QueryRow(ctx, anySQL, exec).Scan(&found); err != nil {
		return false, fmt.Errorf("keys: ask whether there is any: %w", err)
	}
	if found {
		s.any.Store(true)
	} else {
		s.none.at = asked
	}
	return found, nil
}
