// Package lockrepo keeps expiring, fenced locks in Postgres: at most one
// holder per lock, and for every acquisition a token larger than all before it.
//
// # Who decides
//
// The database decides who holds a lock, one row per lock, and its clock alone
// decides when a lease ends. A process uses its own clocks only to stop
// trusting a lease early, never to extend one.
//
// A lease is advice to its holder and law to nobody: between a look at a clock
// and a write any pause may lie. What a holder writes is protected by package
// fence, inside the transaction that writes.
//
// # By which clock
//
// The holder trusts itself until the moment before the request was sent, plus
// the TTL, less the margin. Elapsed time is the largest that the monotonic
// clock, the boot clock (which goes on while a machine sleeps) and the wall
// clock say. The wall clock can be set by hand, so on its word alone a lease is
// only suspected: [Kept.Check] answers [ErrSuspect], a renewal is asked for at
// once, and the lease ends unless it is answered within the margin; [Kept.Sure]
// waits for that. A database clock that moved on by more than ours and the
// margin between two renewals is suspicion too.
//
// # What happens on each failure
//
//   - Somebody else holds the lock: [Repo.Acquire] answers a [*HeldError] at
//     once. It never waits for a lock, nor writes when it is turned away.
//   - The reply to an acquire is lost: the same grant id, asked again, is the
//     same grant. Otherwise the grant is released by its id, as well as can be.
//   - A renewal is answered "not held": the context ends at once with the
//     cause, [ErrTakenOver], [ErrForced] or [ErrExpired]. A lease that has
//     ended is never revived.
//   - A renewal isn't answered: it is asked again until the holder's own
//     deadline, which lies before the lease's end. Then the context ends with
//     [ErrExpired].
//   - The process exhausts its pool: heartbeats have two connections of their
//     own, and one statement renews all leases that are due, up to 1,000.
//   - One lock row is locked by somebody: the beat passes over it, and that
//     lease alone is asked for on the second connection.
//   - The database is restarted or replaced: no token is granted until the
//     clock row knows the new server, see [Repo.Adopt]. Leases live on.
//   - A lock row is deleted by hand: the next token is larger still.
//
// # Callers without a grant
//
// Who comes over HTTP has a name and a key instead of a grant id:
// [Repo.RenewAs] and [Repo.ReleaseAs] know a lease by these, [As.Token] makes
// sure that it is the one that the caller means, and [Repo.AcquireIdempotent]
// answers a request that is sent again with the lease that it had.
// [Repo.AcquireWait] waits for a release. What isn't an answer of the
// protocol's is [Unknown].
//
// Every lease that ends leaves a [Tenure], whatever ended it: an expired one is
// written down by the grant or the sweep that finds it. Only a row that is
// deleted by hand takes its live lease along unrecorded.
package lockrepo
