// Package lockclient holds locks of a pawl server over HTTP, for programs that
// have no connection to its database. It promises what package lockrepo
// promises a holder: whoever believes in a lease by this package has stopped
// believing in it before anybody else can be granted the lock.
//
// # By which clock
//
// The server's database decides when a lease ends. The holder trusts itself
// until the moment before the request was sent, plus the TTL that it was given
// (a server cuts it at its --max-hold), less the margin: the time that the
// request and the server took is the holder's loss. Elapsed time is the largest that the monotonic clock, the boot clock and the wall
// clock say; on the word of the wall clock alone, which can be set by hand, a
// lease is suspected first, see [Kept.Check].
//
// # What happens on each failure
//
//   - Somebody else holds the lock: [Client.Acquire] answers a [*HeldError].
//   - The reply to an acquire is lost: it is sent again with the same
//     idempotency key and answered with the same grant, whose time runs since
//     the first try. Every acquisition has a holder's name of its own, so that
//     no process can end the lease of another.
//   - A renewal is answered "not held": the context ends with the cause, as soon
//     as the lock's history has told it: [ErrTakenOver], [ErrForced],
//     [ErrExpired]; [ErrNotHeld] where it doesn't tell.
//   - A renewal isn't answered, or with something that decides nothing (503,
//     429, a key that was revoked): it is asked again, exponentially later and
//     with full jitter, until the holder's own deadline. Then the context ends
//     with [ErrExpired].
//   - The reply to a release is lost: the lease is asked for in the lock's
//     history before "not there" is believed.
//   - The server redirects: that is an error. No redirect is followed.
//
// A renewal and a release always name their token (If-Match). A lease is
// advice: what a holder writes is protected by a fence that compares its token,
// wherever the data is; see docs/clients.md.
package lockclient
