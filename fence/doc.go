// Package fence keeps a holder whose lease has ended from writing.
//
// It promises three things, each for its own kind of data:
//
//   - Data in this database: a transaction that [Do] or [Guard] has tied to a lease either commits wholly before the
//     lock is granted to anybody else, or fails. Its reads are covered too: what it has read is still true when it
//     commits, as far as holders of the same lock are concerned.
//   - Data elsewhere that can keep a number (a row in another database, a file, an account): a write that carries a
//     token below the target's mark is refused. [Claim] raises the marks before the new holder reads, [Check] lets
//     one holder write often, [Once] lets it write once.
//   - Tables that must never be written without a lease, by whatever program: [Protect] has the database refuse
//     (or, to begin with, log) each such statement.
//
// The database decides, by its own clock, on the locked row. Asking "do I still hold it?" before a write is no fence:
// the process may be stopped between the answer and the write, for as long as it takes to lose the lock.
//
// How the guard works: it takes the lock's row FOR KEY SHARE. A renewal passes that, a takeover does not, and since
// acquiring never waits (SKIP LOCKED) it answers "held" until the guarded transaction has ended. A guarded transaction
// that falls silent for as long as its lease lasts is ended by the server, so that it can't keep the successor out.
// [Do] sends the guard once more, in one batch with COMMIT, because a guard inside a savepoint goes when the savepoint
// is rolled back. [Guard] alone can't do that: it belongs outside every savepoint, first in the transaction.
//
// At REPEATABLE READ and above the guard must be the transaction's first statement. A holder that renews passes it; one
// whose lock was taken over since the snapshot gets 40001 from Postgres, and [ErrStale] from this package.
//
// A refusal is a [*StaleError] or one of the sentinels, never a retry: the writer must stop, and acquire again if it
// wants to go on. [Do] and [Claim] record it in pawl.refusals, in a transaction of its own.
// When the reply to COMMIT is lost the outcome is [ErrUnknown]: ask with SELECT … FOR UPDATE on a row that the
// transaction updated, which waits for its end; a plain SELECT may look too early and a blind retry may apply it twice. A row
// that it inserted is seen by nobody until its end: insert it again under its key, which waits too.
//
// What it does not promise: it guards against mistakes and old holders, not against a hostile database user; and a
// third party that looks at no token can't be fenced at all, only given an idempotency key.
package fence
