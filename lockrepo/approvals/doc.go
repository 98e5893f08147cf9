// Package approvals keeps what one person asks for and a second one decides:
// for now the forced release of a lease.
//
// It promises:
//   - No lease is released by force on one person's word. Who approves is
//     another than who has asked, compared by id. A stored setting for teams of
//     one, single operator, lifts that; the audit marks each such release.
//   - A request is for one lease, by its token. When that lease has ended, the
//     request is stale and releases nothing, whoever holds the lock by then.
//   - A request has a reason of at least 10 characters, and a time after which
//     it can't be approved any more: 15 minutes, or 1 to 60 as asked for.
//   - Decision, release, tenure and audit are one transaction: all or none. Of
//     two people who decide at once one does, and the other is told who.
//   - The release doesn't wait for guarded transactions. From its commit no new
//     guard and no renewal of that lease passes; open ones drain, and until then
//     nobody is granted the lock. Only then are they terminated, if that was asked
//     for: a failure of that leaves the lease released.
//
// The rules are functions and constraints of the database, so they bind whoever
// calls them. They take a person's id from the caller: who may write pawl's
// tables as he likes is not bound. What a key may do is read from its row, at the
// moment of the act: a revoked key approves nothing.
package approvals
