// Package keys keeps the bearer keys of the lock API: made, listed, revoked
// and checked in Postgres, in pawl's own schema.
//
// It promises that a secret is shown once, when its key is made, and stored as
// its SHA-256 only; that a wrong, revoked or expired key is refused alike, in
// constant time after a look-up by id; and that a database in which a key was
// ever made never counts as one without keys again. A right key is remembered
// for a second, so a revoked or expired one works at most that much longer.
package keys
