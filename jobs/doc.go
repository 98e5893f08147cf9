// Package jobs runs what is owed: each period of a job is completed at most once, and none is lost without a row
// that says why.
//
// # The promise
//
//   - Every replica plans; there is no leader. A period is one row with a primary key of job, key and revision, so
//     that two planners can't owe it twice, and the schedule's watermark moves in the same transaction, so that none
//     is forgotten.
//   - A period runs under the lock that was written into it when it was planned. A later change of the
//     configuration never moves it to another lock.
//   - At most one run of a lock is running. A run is one attempt under one fencing token; its id is the grant id of
//     its lease.
//   - What [Run.Tx] and [Run.Complete] commit is committed under that token: a holder that was paused, cut off or
//     replaced commits nothing after its successor has been granted.
//   - The result, the completion marker and the release of the lease commit together, or not at all.
//   - When a holder dies, any replica notices within a second of the lease's end and the period is owed again, with
//     its checkpoint. After MaxRetries + 1 runs it is dead, and the next period still runs.
//   - A run that is drained by a shutdown costs no attempt.
//   - A tick that doesn't become a run has a row that says why: it came too late, or while the job was paused, or while
//     another period ran. [Pause], [Resume], [Backfill], [Rerun], [Retry], [Cancel] and [Trigger] are what people do about
//     it; each is one transaction with a row of the audit, and none moves the watermark back.
//
// # The lane rule
//
// When no run of a lock is running and one of its periods may run, a live delivery for that lock exists. Whatever
// inserts, starts, ends or retries a period enters the lane of its lock first (pawl.lane, which always writes the
// row), makes its changes, and leaves last by a statement of its own (pawl.advance, with a snapshot of its own).
// A backstop looks every few seconds for lanes that break the rule all the same.
//
// A delivery is a River row that says only "this lock has work". Start picks the oldest period that may run, so
// that a surplus delivery, a retry or a row deleted by hand does no harm: River is the courier, the period is the
// truth.
//
// # Order of locks
//
// Schedules, locks by name, lanes by name, periods, runs, fences by name, River rows by id, history. Only what is
// taken with SKIP LOCKED may come out of order.
//
// # Time
//
// All decisions are made by the database's clock. The holder's own clock may only shorten its lease.
package jobs
