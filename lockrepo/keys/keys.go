package keys

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// The roles. Each may do what the one before may.
const (
	Reader   = "reader"   // look
	Worker   = "worker"   // also acquire, renew and release
	Operator = "operator" // also the page's actions
)

var (
	// ErrUnknownKey is the one answer to a bearer that isn't good: unknown,
	// wrong, revoked or expired. The error's text has the reason, for the log
	// only: whoever sent the bearer must not learn it.
	ErrUnknownKey = errors.New("keys: not a key that may be used")
	// ErrNotFound says that there is no key of that id or name.
	ErrNotFound = errors.New("keys: no such key")
	// ErrNameTaken says that a key of that name was made before, revoked ones
	// included.
	ErrNameTaken = errors.New("keys: name is taken: choose another")
)

// Key is a key without its secret. Times are UTC by the database's clock.
type Key struct {
	ID         string     `json:"id"`       // lower-case letters and digits
	Name       string     `json:"name"`     // unique, those of revoked keys included; 1 to 100 bytes
	Role       string     `json:"role"`     // reader, worker or operator
	Prefix     string     `json:"prefix"`   // only locks whose names begin so; empty: all
	Approver   bool       `json:"approver"` // may approve, whatever the role
	CreatedAt  time.Time  `json:"created_at"`
	CreatedBy  string     `json:"created_by"`
	ExpiresAt  *time.Time `json:"expires_at"`   // from then on it is refused; nil: never
	RevokedAt  *time.Time `json:"revoked_at"`   // nil: not revoked
	LastUsedAt *time.Time `json:"last_used_at"` // to the minute; nil: never used
}

const (
	maxName   = 100
	maxPrefix = 255
)

func (k *Key) check() error {
	switch k.Role {
	case Reader, Worker, Operator:
	default:
		return fmt.Errorf("role %q does not exist: give reader, worker or operator", k.Role)
	}
	switch {
	case len(k.Prefix) > maxPrefix || !plain(k.Prefix):
		return fmt.Errorf("prefix %q is longer than %d bytes or has control characters: give the beginning of a lock's name, such as payments/", k.Prefix, maxPrefix)
	case !named(k.Name):
		return fmt.Errorf("name %q is empty, longer than %d bytes or has control characters: give one such as settlement-worker", k.Name, maxName)
	case !named(k.CreatedBy):
		return fmt.Errorf("maker %q is empty, longer than %d bytes or has control characters: say who makes the key", k.CreatedBy, maxName)
	}
	return nil
}

func named(s string) bool { return strings.TrimSpace(s) != "" && len(s) <= maxName && plain(s) }

func plain(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) }

const columns = `id, name, role, prefix, approver, created_at, created_by, expires_at, revoked_at, last_used_at`

func (k *Key) dest() []any {
	return []any{&k.ID, &k.Name, &k.Role, &k.Prefix, &k.Approver, &k.CreatedAt, &k.CreatedBy, &k.ExpiresAt, &k.RevokedAt, &k.LastUsedAt}
}

func (k *Key) utc() {
	k.CreatedAt = k.CreatedAt.UTC()
	for _, t := range []*time.Time{k.ExpiresAt, k.RevokedAt, k.LastUsedAt} {
		if t != nil {
			*t = t.UTC()
		}
	}
}

func scan(row pgx.CollectableRow) (k Key, err error) {
	err = row.Scan(k.dest()...)
	k.utc()
	return k, err
}
