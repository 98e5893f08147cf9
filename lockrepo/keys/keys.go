package keys

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// The roles. Each may do what the one before may.
const (
	Reader   = "reader"   // look
	Worker   = "worker"   // also acquire, renew and release
	Operator = "operator" // also the page's actions
)

// ErrUnknownKey is the one answer to a bearer that isn't good: unknown,
// wrong, revoked or expired. The error's text has the reason, for the log only.
var ErrUnknownKey = errors.New("keys: not a key that may be used")

// ErrNotFound says that there is no key of that id or name.
var ErrNotFound = errors.New("keys: no such key")

// Key is a key without its secret. Times are UTC by the database's clock.
type Key struct {
	ID         string     `json:"id"`       // lower-case letters and digits
	Name       string     `json:"name"`     // unique, of the revoked ones too
	Role       string     `json:"role"`     // reader, worker or operator
	Prefix     string     `json:"prefix"`   // only locks whose names begin so; empty: all
	Approver   bool       `json:"approver"` // may approve, whatever the role
	CreatedAt  time.Time  `json:"created_at"`
	CreatedBy  string     `json:"created_by"`
	ExpiresAt  *time.Time `json:"expires_at"`   // nil: never
	RevokedAt  *time.Time `json:"revoked_at"`   // nil: not revoked
	LastUsedAt *time.Time `json:"last_used_at"` // to the minute; nil: never used
}

// Store keeps keys. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a Store of the keys in pool's database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

var errProvisional = errors.New("not built yet")

// Create makes a key of k's name, role, prefix, right to approve, maker and
// end, and returns the bearer, "pawl_<id>_<secret>", which is kept nowhere.
func (s *Store) Create(ctx context.Context, k Key) (bearer string, made Key, err error) {
	return "", Key{}, errProvisional
}

// List returns all keys, the revoked ones too, in the order they were made.
func (s *Store) List(ctx context.Context) ([]Key, error) { return nil, errProvisional }

// Revoke ends a key for good, or answers [ErrNotFound].
func (s *Store) Revoke(ctx context.Context, idOrName, by string) (Key, error) {
	return Key{}, errProvisional
}

// Check returns the key of a bearer, or [ErrUnknownKey].
func (s *Store) Check(ctx context.Context, bearer string) (Key, error) {
	return Key{}, errProvisional
}

// Any reports whether a key was ever made.
func (s *Store) Any(ctx context.Context) (bool, error) { return false, errProvisional }
