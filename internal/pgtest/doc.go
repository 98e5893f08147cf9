// Package pgtest gives every test a real Postgres database of its own.
//
// It promises:
//   - A test gets a fresh database, made from a migrated template in some 25
//     ms. Nobody else sees it, so that tests may run in parallel.
//   - One private server per test process, started by the first test that
//     asks. It is gone when the process ends, however it ends; no TestMain is
//     needed.
//   - Where Postgres isn't installed a test fails. It never skips.
//
// A test that stops or restarts the server starts one of its own with
// package pgdev: this one belongs to all tests of the package.
package pgtest
