// Package settlement turns payments into what each merchant is owed: one row
// per merchant, day and currency.
//
// It promises:
//   - A payment is settled once. A day's rows are written in batches of
//     merchants, each with its checkpoint in the same guarded transaction, and
//     every row carries the token that wrote it: a row is overwritten only by
//     a newer one.
//   - A day is complete only when its control totals agree: what came in is
//     what goes out plus the fees, and every payment is counted. They are
//     compared in the transaction that completes the day.
//   - Money is whole minor units in int64: cents, or yen. A fee is rounded
//     once per sale, half to even.
//   - The worker's memory doesn't depend on the number of payments: the
//     database adds them up.
//
// A day is settled after it has closed. A payment that arrives for a day that
// is complete is found by [Settlement.Totals], not settled.
package settlement
