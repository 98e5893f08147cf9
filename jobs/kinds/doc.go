// Package kinds has the jobs that need no Go: a command, SQL statements, an HTTP request, a comparison. Each is built from a struct
// whose Func method checks it and returns a jobs.Func.
//
// It promises:
//   - A command and all that it has started are gone before anybody else is granted the lock: also when its worker is
//     killed, stopped or cut off. It runs at least once, and what it writes is fenced only where it uses its token.
//   - SQL in one transaction is done exactly once: guard, statements, expectation and completion are one commit. With
//     a checkpoint after each statement each is done exactly once in pawl's database, and at least once in another.
//     Arguments are bound, never pasted into the text.
//   - An HTTP request that may change something is on record before it is sent, and its outcome after it. It is sent at
//     least once, with an idempotency key that stays the same until the receiver has definitely refused it, and never
//     again when it is done. It never leaves the host that it was meant for, and no secret of it is recorded.
//   - A reconciliation changes nothing but what it has found. A list that it can't read to its end calls nothing absent.
//   - A statement that lists a period's shards only reads; SQL that reduces them commits with the period's completion.
//   - Whatever a command or an answer says, memory is bounded, and the beginning and the end are kept.
package kinds
