// Package faults lets everything fail that can: it is for tests only.
//
// It promises:
//   - A [Ledger] is work whose mistakes show: each batch, each completion and
//     each token leaves a row, and [Ledger.Violations] finds what was done
//     twice, not at all, or after a higher token.
//   - A [Proxy] stands between one worker process and Postgres and loses
//     replies, delays them, or swallows everything.
//   - A [Process] is a worker of its own, a child of the test binary, so that
//     it can be stopped, killed and given a wrong clock. It ends with the test.
//
// The tests here let faults come one by one and together. Which, when and for
// how long comes from a seed, printed before anything fails; how the machine
// interleaves them does not. "make faults" writes how long each took to be
// recovered from to docs/faults.md.
package faults
