package keys

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// exec prepares nothing, so that a pooler may stand between.
const exec = pgx.QueryExecModeExec

// Store keeps keys. It is safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool
	now  func() time.Time

	mu    sync.Mutex
	known map[[sha256.Size]byte]remembered // by the digest of the bearer

	any  atomic.Bool // a key was ever made
	none struct {    // none was, as of then
		sync.Mutex
		at time.Time
	}
}

// New returns a Store of the keys in pool's database.
func New(pool *pgxpool.Pool) *Store {
	return &Store{pool: pool, now: time.Now, known: map[[sha256.Size]byte]remembered{}}
}

const idLength = 12

// $1 id, $2 name, $3 secret's digest, $4 role, $5 approver, $6 prefix, $7 maker, $8 end. No row: the end isn't in the future.
const createSQL = `
with made as (
  insert into pawl.keys (id, name, secret, role, approver, prefix, created_by, expires_at)
  select $1::text, $2::text, $3::bytea, $4::text, $5::boolean, $6::text, $7::text, $8::timestamptz
   where $8::timestamptz is null or $8::timestamptz > clock_timestamp()
  returning *
), noted as (
  insert into pawl.audit (actor, action, detail)
  select created_by, 'key_create', jsonb_build_object('id', id, 'name', name, 'role', role, 'approver', approver, 'prefix', prefix, 'expires_at', expires_at) from made
)
select ` + columns + ` from made`

// Create makes a key of k's name, role, prefix, right to approve, maker and
// end; the rest of k isn't used. It returns the bearer, "pawl_<id>_<secret>",
// which is kept nowhere, and writes an audit row in the same transaction. A
// name that was used before is [ErrNameTaken].
func (s *Store) Create(ctx context.Context, k Key) (bearer string, made Key, err error) {
	if err := k.check(); err != nil {
		return "", Key{}, fmt.Errorf("keys: create: %w", err)
	}
	id, secret := strings.ToLower(rand.Text())[:idLength], strings.ToLower(rand.Text())
	digest := sha256.Sum256([]byte(secret))
	err = s.pool.QueryRow(ctx, createSQL, exec, id, k.Name, digest[:], k.Role, k.Approver, k.Prefix, k.CreatedBy, k.ExpiresAt).Scan(made.dest()...)
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", Key{}, fmt.Errorf("keys: create: end %s is not in the future: give a later one, or none", k.ExpiresAt.UTC().Format(time.RFC3339))
	case errors.As(err, &pg) && pg.ConstraintName == "keys_name_key":
		return "", Key{}, fmt.Errorf("keys: create %q: %w", k.Name, ErrNameTaken)
	case err != nil:
		return "", Key{}, fmt.Errorf("keys: create %q: %w", k.Name, err)
	}
	made.utc()
	s.any.Store(true)
	return scheme + id + "_" + secret, made, nil
}

const listSQL = `select ` + columns + ` from pawl.keys order by created_at, id`

// List returns all keys, the revoked ones too, in the order they were made.
func (s *Store) List(ctx context.Context) ([]Key, error) {
	rows, err := s.pool.Query(ctx, listSQL, exec)
	if err != nil {
		return nil, fmt.Errorf("keys: list: %w", err)
	}
	all, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("keys: list: %w", err)
	}
	return all, nil
}

// $1 id or name, $2 who. An id goes before a name. A key that was revoked before stays as it is.
const (
	revokeSQL = `
with found as materialized (
  select id from pawl.keys where id = $1::text or name = $1::text order by id = $1::text desc limit 1
), ended as (
  update pawl.keys k set revoked_at = clock_timestamp(), revoked_by = $2::text from found f where k.id = f.id and k.revoked_at is null
  returning k.*
), noted as (
  insert into pawl.audit (actor, action, detail) select revoked_by, 'key_revoke', jsonb_build_object('id', id, 'name', name) from ended
)
select ` + columns + ` from ended`
	foundSQL = `select ` + columns + ` from pawl.keys where id = $1::text or name = $1::text order by id = $1::text desc limit 1`
)

// Revoke ends a key for good, and writes an audit row in the same transaction.
// Other processes may take the key for a second more. A key that was revoked
// before is returned as it is. [ErrNotFound]: there is none.
func (s *Store) Revoke(ctx context.Context, idOrName, by string) (Key, error) {
	if !named(by) {
		return Key{}, fmt.Errorf("keys: revoke: actor %q is empty, longer than %d bytes or has control characters: say who revokes the key", by, maxName)
	}
	if !plain(idOrName) {
		return Key{}, fmt.Errorf("keys: revoke %q: %w", idOrName, ErrNotFound)
	}
	var k Key
	err := s.pool.QueryRow(ctx, revokeSQL, exec, idOrName, by).Scan(k.dest()...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = s.pool.QueryRow(ctx, foundSQL, exec, idOrName).Scan(k.dest()...)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Key{}, fmt.Errorf("keys: revoke %q: %w", idOrName, ErrNotFound)
	case err != nil:
		return Key{}, fmt.Errorf("keys: revoke %q: %w", idOrName, err)
	}
	k.utc()
	s.forget()
	return k, nil
}
